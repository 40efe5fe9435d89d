//! How a session ends.

use super::*;

#[test]
fn o22_nothing_said_nothing_to_end() {
    let mut rig = Rig::new();
    rig.session.handle_eof(rig.now);
    assert!(rig.session.is_over());
    rig.none();
    assert_eq!((rig.session.poll_timeout(), rig.told().len()), (None, 0));
}

#[test]
fn o21_what_was_said_before_the_end_is_answered_before_the_end() {
    let mut rig = Rig::new();
    for text in [INITIALIZE, INITIALIZED, &call(1), r#"{"method":"n"}"#, &call(2)] {
        rig.say(text);
    }
    rig.session.handle_eof(rig.now);
    let initialize = rig.next();
    rig.begin(initialize.id, "s1", 0);
    let initialized = rig.next();
    rig.accept(initialized.id);
    let first = rig.next();
    assert_eq!(first.body, call(1), "no stream of the server's own any more");
    rig.session.handle_written(rig.now, first.id);
    let [note, second] = [rig.next(), rig.next()];
    rig.json(second.id, 200, &result(2));
    rig.json(first.id, 200, &result(1));
    rig.none();
    rig.accept(note.id);
    let delete = rig.next();
    assert_eq!((delete.method, rig.told().len()), (Method::Delete, 3));
    assert!(!rig.session.is_over());
    rig.json(delete.id, 405, "no");
    assert!(rig.session.is_over() && rig.session.unanswered() == 0);
    assert_eq!(rig.session.poll_timeout(), None);
}

#[test]
fn o21_after_the_grace_what_is_owed_is_answered_with_errors() {
    let mut rig = Rig::opened();
    let made = [rig.call(1), rig.call(2)];
    rig.say(r#"{"id":"l","method":"subscriptions/listen"}"#);
    let listen = rig.next();
    rig.sse(made[1].id, "id: 5\nretry: 1000000\n\n");
    rig.end(made[1].id);
    rig.session.handle_eof(rig.now);
    rig.pass(limits::EOF_GRACE - Duration::from_millis(1));
    assert_eq!(rig.told().len(), 0);
    rig.pass(Duration::from_millis(1));
    let told = rig.told();
    assert!(told.len() == 3 && told.iter().all(|text| text.contains("\"reason\":\"ending\"")), "{told:?}");
    assert_eq!(rig.session.unanswered(), 2);
    assert_eq!(rig.aborted(), [made[0].id, listen.id]);
    let delete = rig.next();
    rig.pass(limits::DELETE_PATIENCE);
    assert_eq!(rig.aborted(), [delete.id]);
    assert!(rig.session.is_over());
}

#[test]
fn nobody_waits_for_a_subscription() {
    let mut rig = Rig::opened();
    rig.say(r#"{"id":"l","method":"subscriptions/listen"}"#);
    let listen = rig.next();
    rig.session.handle_eof(rig.now);
    assert_eq!(rig.aborted(), [listen.id]);
    assert_eq!((rig.next().method, rig.session.unanswered()), (Method::Delete, 0));
    assert_eq!(rig.error()["id"], "l");
}

#[test]
fn what_the_server_asks_when_the_agent_is_gone_is_refused() {
    let mut rig = Rig::opened();
    let made = rig.call(1);
    rig.sse(made.id, &data(r#"{"id":"before","method":"roots/list"}"#));
    rig.session.handle_eof(rig.now);
    let refused = rig.next();
    assert!(refused.body.starts_with(br#"{"jsonrpc":"2.0","id":"before","error":"#));
    rig.accept(refused.id);
    rig.chunk(made.id, &data(r#"{"id":"after","method":"roots/list"}"#));
    let refused = rig.next();
    assert!(refused.body.starts_with(br#"{"jsonrpc":"2.0","id":"after","error":"#));
    rig.accept(refused.id);
    assert_eq!(rig.told().len(), 1);
    rig.chunk(made.id, &data(&result(1)));
    assert_eq!(rig.told(), [result(1)]);
    assert_eq!(rig.next().method, Method::Delete);
}

#[test]
fn told_to_end_is_the_same_but_faster() {
    let mut rig = Rig::opened();
    let made = rig.call(1);
    rig.session.terminate(rig.now);
    rig.pass(limits::INNER_TERMINATE_STEP);
    assert_eq!(rig.error()["error"]["data"]["reason"], "ending");
    assert_eq!(rig.aborted(), [made.id]);
    assert_eq!(rig.next().method, Method::Delete);
    rig.pass(limits::QUICK_DELETE_PATIENCE);
    assert!(rig.session.is_over());
    // What comes now is answered, and nothing else happens.
    rig.say(&call(2));
    rig.say(r#"{"method":"n"}"#);
    assert_eq!(rig.error()["id"], 2);
    rig.session.terminate(rig.now);
    rig.session.handle_eof(rig.now);
    rig.pass(Duration::from_secs(1000));
    rig.none();
    assert!(rig.session.is_over());
}

#[test]
fn told_to_end_while_the_session_is_being_ended_waits_less() {
    let mut rig = Rig::opened();
    rig.session.handle_eof(rig.now);
    assert_eq!(rig.next().method, Method::Delete);
    rig.session.terminate(rig.now);
    rig.pass(limits::QUICK_DELETE_PATIENCE);
    assert!(rig.session.is_over());
}

#[test]
fn a_session_that_is_lost_at_the_end_is_still_made_anew_for_what_is_owed() {
    let mut rig = Rig::opened();
    let made = rig.call(1);
    rig.session.handle_eof(rig.now);
    rig.json(made.id, 404, "");
    let initialize = rig.next();
    rig.begin(initialize.id, "s2", 0);
    let confirm = rig.next();
    rig.accept(confirm.id);
    let again = rig.next();
    rig.json(again.id, 200, &result(1));
    assert_eq!(rig.told(), [result(1)]);
    assert_eq!(header(&rig.next(), "mcp-session-id"), Some("s2"));
}
