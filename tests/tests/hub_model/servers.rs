//! What servers do, at random.

use super::model::{LEVELS, Question, Withdrawn};
use super::ops::URIS;
use super::stream::spelled;
use super::world::World;

impl World {
    /// A server answers something that it has, in any order.
    pub fn answer(&mut self) {
        let has_work = self.model.children.iter().any(|child| child.is_open() && !child.jobs.is_empty());
        if has_work { self.answer_one() } else { self.ask() }
    }

    pub fn answer_one(&mut self) {
        let Some(at) = self.server() else { return self.pass_some() };
        let count = self.model.children[at].jobs.len();
        if count == 0 || self.model.children[at].stream.has_output() {
            return;
        }
        let nth = if self.model.children[at].initialized > self.model.children[at].done.len().min(1) {
            0
        } else {
            self.rng.below(count)
        };
        self.answer_job(at, nth);
    }

    pub fn answer_job(&mut self, at: usize, nth: usize) {
        let job = self.model.children[at].jobs.remove(nth);
        let text = self.answer_text(&job, self.calm);
        let fails = text.contains("\"error\"");
        let child = &mut self.model.children[at];
        if let (true, "resources/subscribe", Some(uri)) = (fails, &*job.method, &job.uri)
            && !job.cancelled
        {
            child.subscribed.remove(uri);
        }
        child.answered_any = true;
        child.done.push(job);
        self.tell(at, &text);
    }

    pub fn answer_text(&mut self, job: &super::model::Job, calm: bool) -> String {
        let id = &job.id;
        let tag = job.tag.map_or(String::new(), |tag| format!("\"t\":{tag}"));
        let is_bad = job.uri.as_deref().is_some_and(|uri| uri.starts_with("bad"));
        let fails = match &*job.method {
            "resources/subscribe" => is_bad,
            "resources/unsubscribe" | "logging/setLevel" => false,
            "initialize" => !calm && self.rng.percent(5),
            _ => !calm && self.rng.percent(15),
        };
        if fails {
            let code = if job.method == "server/discover" { -32021 } else { -32000 };
            return format!(
                r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{code},"message":"no","data":{{{tag}}}}}}}"#
            );
        }
        let result = match &*job.method {
            "initialize" => concat!(
                r#"{"protocolVersion":"2025-11-25","capabilities":{"tools":{"listChanged":true},"tasks":{}},"#,
                r#""serverInfo":{"name":"m","version":"1"}}"#
            )
            .to_owned(),
            "subscriptions/listen" => {
                format!(r#"{{"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}},{tag}}}"#)
            }
            _ => format!("{{{tag}}}"),
        };
        format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#)
    }

    /// A server answers what it has answered before, or what nobody asked.
    pub fn late(&mut self) {
        let Some(at) = self.server() else { return };
        let done = &self.model.children[at].done;
        let text = if done.is_empty() || self.rng.percent(20) {
            let odd = *self.rng.pick(&["987654", "\"1\"", "1.5", "-1", "\"lumen-1\""]);
            format!(r#"{{"jsonrpc":"2.0","id":{odd},"result":{{"t":0}}}}"#)
        } else {
            let job = done[self.rng.below(done.len())].clone();
            self.answer_text(&job, true)
        };
        self.tell(at, &text);
    }

    pub fn progress(&mut self) {
        let Some(at) = self.server() else { return };
        let child = &self.model.children[at];
        let finished = self.rng.percent(20);
        let jobs = if finished { &child.done } else { &child.jobs };
        let jobs: Vec<_> = jobs.iter().filter(|job| job.token.is_some()).cloned().collect();
        if jobs.is_empty() {
            return self.answer_one();
        }
        let job = self.rng.pick(&jobs).clone();
        let mark = self.model.fresh();
        let (token, tag) = (job.token.unwrap_or_default(), job.tag.unwrap_or_default());
        let text = format!(
            r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{{"progressToken":{token},"progress":{mark},"mark":{mark},"t":{tag}}}}}"#
        );
        let owner = self.model.tags.get(&tag).map(|tagged| tagged.client);
        // One that was told to end may not have noticed yet.
        let is_heard = self.model.children[at].is_prompt();
        if let Some(owner) = owner.map(|owner| &self.model.clients[owner])
            && is_heard
            && !finished
            && !job.cancelled
            && owner
                .asked
                .iter()
                .any(|asked| asked.tag == tag && asked.withdrawn == Withdrawn::No && !asked.is_shared())
        {
            self.model.awaited.insert((owner.number, mark));
        }
        self.tell(at, &text);
    }

    /// A server says something that goes to many, or to whoever listens.
    pub fn announce(&mut self) {
        let Some(at) = self.server() else { return };
        let mark = self.model.fresh();
        let kind = self.rng.below(5);
        let child = &self.model.children[at];
        if child.is_modern {
            return self.announce_modern(at, kind);
        }
        let is_greeted = child.told_initialized > 0 && child.initialized > 0;
        let text = match kind {
            0 => {
                let method = *self.rng.pick(&["notifications/tools/list_changed", "odd/notice"]);
                if is_greeted && child.is_prompt() {
                    let greeted = self.model.clients.iter().filter(|client| client.greeted && !client.gone);
                    let greeted: Vec<_> = greeted.map(|client| (client.number, mark)).collect();
                    self.model.awaited.extend(greeted);
                }
                format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{{"mark":{mark}}}}}"#)
            }
            1 | 2 => {
                let level = *self.rng.pick(&LEVELS);
                format!(
                    r#"{{"jsonrpc":"2.0","method":"notifications/message","params":{{"level":"{level}","data":"x","mark":{mark}}}}}"#
                )
            }
            _ => {
                let uri = *self.rng.pick(&URIS);
                format!(
                    r#"{{"jsonrpc":"2.0","method":"notifications/resources/updated","params":{{"uri":"{uri}","mark":{mark}}}}}"#
                )
            }
        };
        self.tell(at, &text);
    }

    pub fn announce_modern(&mut self, at: usize, kind: usize) {
        let listens = |job: &&super::model::Job| job.method == "subscriptions/listen";
        let jobs: Vec<_> = self.model.children[at].jobs.iter().filter(listens).cloned().collect();
        if jobs.is_empty() {
            return self.answer_one();
        }
        let job = self.rng.pick(&jobs).clone();
        let (id, tag) = (&job.id, job.tag.unwrap_or_default());
        let method = if !job.acknowledged {
            "notifications/subscriptions/acknowledged"
        } else if kind == 0 {
            "notifications/cancelled"
        } else {
            "notifications/tools/list_changed"
        };
        for known in self.model.children[at].jobs.iter_mut().filter(|known| known.id == *id) {
            known.acknowledged = true;
        }
        let more = if method == "notifications/cancelled" {
            self.model.children[at].jobs.retain(|known| known.id != *id);
            self.model.children[at].done.push(job.clone());
            format!(r#","requestId":{id}"#)
        } else {
            String::new()
        };
        let text = format!(
            r#"{{"jsonrpc":"2.0","method":"{method}","params":{{"t":{tag},"_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}{more}}}}}"#
        );
        self.tell(at, &text);
    }

    /// A server asks a client something, or takes it back.
    pub fn question(&mut self) {
        let Some(at) = self.server() else { return };
        let carrier = self.model.children[at].stream.carrier;
        let takes_back = self.rng.percent(20);
        let child = &mut self.model.children[at];
        // A modern server asks nothing; what it cancels is a subscription.
        let takes_back = takes_back && child.initialized > 0;
        if let Some(question) = child.questions.iter_mut().find(|question| takes_back && !question.withdrawn)
        {
            question.withdrawn = true;
            let text = format!(
                r#"{{"jsonrpc":"2.0","method":"notifications/cancelled","params":{{"requestId":{}}}}}"#,
                question.id
            );
            return self.tell(at, &text);
        }
        let next = child.next_question;
        child.next_question += 1;
        let id = match self.rng.below(4) {
            0 => "1".to_owned(),
            1 => format!("\"q\\u0071{next}\""),
            _ => next.to_string(),
        };
        let id = spelled(carrier, &id);
        // Twice the same, only if it will be clear at once which of the two is refused.
        let child = &self.model.children[at];
        let same = child.questions.iter().filter(|question| question.id == id).count();
        let is_clear = child.is_prompt() && child.told_initialized > 0 && same == 1;
        if same > 0 && (!is_clear || child.questions.iter().any(|question| question.withdrawn)) {
            return;
        }
        let method = *self.rng.pick(&[
            "roots/list",
            "sampling/createMessage",
            "elicitation/create",
            "ping",
            "odd/ask",
        ]);
        let mark = self.model.fresh();
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{{"mark":{mark}}}}}"#);
        self.model.children[at].questions.push(Question { id, mark, client: None, withdrawn: false });
        self.tell(at, &text);
        self.settle();
        self.check_question(at, method, mark);
    }

    /// Only a client that is alone at work is asked.
    pub fn check_question(&mut self, at: usize, method: &str, mark: u64) {
        let child = &self.model.children[at];
        if !child.is_prompt() {
            return;
        }
        let mut busy = Vec::new();
        let mut perhaps = false;
        for job in &child.jobs {
            let Some(tag) = job.tag.filter(|_| !job.cancelled && job.method != "subscriptions/listen") else {
                continue;
            };
            let owner = &self.model.clients[self.model.tags[&tag].client];
            let asked = owner.asked.iter().find(|asked| asked.tag == tag);
            match asked {
                Some(asked) if asked.withdrawn == Withdrawn::No && !owner.gone && !asked.is_shared() => {
                    busy.push(owner.number);
                }
                _ => perhaps = true,
            }
        }
        busy.dedup();
        busy.sort_unstable();
        busy.dedup();
        let question = child.questions.iter().find(|question| question.mark == mark);
        let went_to = question.and_then(|question| question.client);
        if let Some(client) = went_to {
            assert!(perhaps || busy == [client], "{method} went to client {client}, at work are {busy:?}");
        }
        let needs = method.split('/').next().unwrap_or_default();
        if let ([client], false) = (&*busy, perhaps) {
            let client = &self.model.clients[*client];
            let can = client.capable.contains(needs) && client.is_prompt() && client.greeted;
            let is_fresh = child.questions.iter().filter(|other| other.mark != mark).count() == 0;
            let is_known = ["roots", "sampling", "elicitation"].contains(&needs);
            assert!(
                !(can && is_fresh && is_known) || went_to.is_some(),
                "{method} did not go to client {}, which is alone at work",
                client.number
            );
        }
    }
}
