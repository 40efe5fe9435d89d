//! The methods, and what a hub does with each: one table for either direction.

use super::Era;

/// What a hub does with a message of a client that has a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FromClient {
    /// Hands it to the server: a request under an id of the hub, and its answer back.
    Forward,
    /// Answers it out of the one handshake with the server.
    Initialize,
    /// Swallows it: the server was told once.
    Initialized,
    /// Hands it on if it names a request of this client that is in flight, by the id which that has at the server.
    Cancelled,
    /// Hands it on if it belongs to a request of the server that this client was asked.
    Progress,
    /// Keeps it as the level of this client, and asks the server for the most verbose of all.
    SetLevel,
    /// Subscribes this client; the server is asked by the first one.
    Subscribe,
    /// The opposite; the server is asked by the last one.
    Unsubscribe,
    /// Opens a subscription that is known by the id of this request.
    Listen,
    /// Hands it to the server, and the answer back without what a hub cannot honour.
    Discover,
    /// A request about tasks. Those of a legacy server are shared by all its clients, so it tells nobody of them
    /// and knows no such method; a modern one has them as an extension, with ids only their owner knows: forwarded.
    Tasks,
    /// Is a hub's own matter: `lumen/` and what follows.
    Own,
    /// Drops it: a request without an id, to which nobody could be told the answer, or it is about something that the
    /// server has not been told of.
    Drop,
}

/// What a hub does with a message of a server that has a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FromServer {
    /// A request: answers it itself.
    Ping,
    /// A request: asks the one client that is concerned, if it can.
    Reverse(Capability),
    /// A request that no client could be asked: answers it with the error -32601.
    Refuse,
    /// Hands it to every client whose level it reaches.
    Log,
    /// Hands it to the client whose token it has, under that client's own token.
    Progress,
    /// Hands it to the client that was asked what is cancelled, or whose subscription ends.
    Cancelled,
    /// Hands it to those subscribed to the resource.
    Updated,
    /// Hands it to all legacy clients, and to those modern ones whose subscription it names.
    ListChanged,
    /// Hands it to those that declared the capability.
    ToDeclared(Capability),
    /// Hands it to the client whose subscription it names.
    Subscription,
    /// Hands it to all, unless it names a token or a subscription: then to its owner. Nothing is known of it.
    ToAll,
    /// Drops it: it is about something that clients have not been told of, a request without an id, or says that it
    /// comes from a hub.
    Drop,
}

/// What a client can be asked by a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// `roots`
    Roots,
    /// `sampling`
    Sampling,
    /// `elicitation`
    Elicitation,
}

impl Capability {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Roots, Self::Sampling, Self::Elicitation];

    /// Returns the name it is declared by.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Roots => "roots",
            Self::Sampling => "sampling",
            Self::Elicitation => "elicitation",
        }
    }
}

/// Whether a method is called or told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Request,
    Notification,
}

/// When there is a method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum When {
    Only(Era),
    Always,
}

/// What is known of a method, in one direction.
pub(super) struct Fact<T> {
    pub(super) method: &'static str,
    pub(super) kind: Kind,
    pub(super) when: When,
    handling: T,
}

const fn fact<T>(method: &'static str, kind: Kind, when: When, handling: T) -> Fact<T> {
    Fact { method, kind, when, handling }
}

const LEGACY: When = When::Only(Era::Legacy);
const MODERN: When = When::Only(Era::Modern);
const BOTH: When = When::Always;

/// By name.
pub(super) static FROM_CLIENT: [Fact<FromClient>; 24] = {
    use FromClient::*;
    use Kind::*;
    [
        fact("completion/complete", Request, BOTH, Forward),
        fact("initialize", Request, LEGACY, Initialize),
        fact("logging/setLevel", Request, LEGACY, SetLevel),
        fact("notifications/cancelled", Notification, BOTH, Cancelled),
        fact("notifications/initialized", Notification, LEGACY, Initialized),
        fact("notifications/progress", Notification, LEGACY, Progress),
        fact("notifications/roots/list_changed", Notification, LEGACY, Forward),
        fact("notifications/tasks/status", Notification, LEGACY, Drop),
        fact("ping", Request, LEGACY, Forward),
        fact("prompts/get", Request, BOTH, Forward),
        fact("prompts/list", Request, BOTH, Forward),
        fact("resources/list", Request, BOTH, Forward),
        fact("resources/read", Request, BOTH, Forward),
        fact("resources/subscribe", Request, LEGACY, Subscribe),
        fact("resources/templates/list", Request, BOTH, Forward),
        fact("resources/unsubscribe", Request, LEGACY, Unsubscribe),
        fact("server/discover", Request, MODERN, Discover),
        fact("subscriptions/listen", Request, MODERN, Listen),
        fact("tasks/cancel", Request, LEGACY, Tasks),
        fact("tasks/get", Request, LEGACY, Tasks),
        fact("tasks/list", Request, LEGACY, Tasks),
        fact("tasks/result", Request, LEGACY, Tasks),
        fact("tools/call", Request, BOTH, Forward),
        fact("tools/list", Request, BOTH, Forward),
    ]
};

/// By name.
pub(super) static FROM_SERVER: [Fact<FromServer>; 18] = {
    use Capability::*;
    use FromServer::*;
    use Kind::*;
    [
        fact("elicitation/create", Request, LEGACY, Reverse(Elicitation)),
        fact("notifications/cancelled", Notification, BOTH, Cancelled),
        fact("notifications/elicitation/complete", Notification, LEGACY, ToDeclared(Elicitation)),
        fact("notifications/message", Notification, BOTH, Log),
        fact("notifications/progress", Notification, BOTH, Progress),
        fact("notifications/prompts/list_changed", Notification, BOTH, ListChanged),
        fact("notifications/resources/list_changed", Notification, BOTH, ListChanged),
        fact("notifications/resources/updated", Notification, BOTH, Updated),
        fact("notifications/subscriptions/acknowledged", Notification, MODERN, Subscription),
        fact("notifications/tasks/status", Notification, LEGACY, Drop),
        fact("notifications/tools/list_changed", Notification, BOTH, ListChanged),
        fact("ping", Request, LEGACY, Ping),
        fact("roots/list", Request, LEGACY, Reverse(Roots)),
        fact("sampling/createMessage", Request, LEGACY, Reverse(Sampling)),
        fact("tasks/cancel", Request, LEGACY, Refuse),
        fact("tasks/get", Request, LEGACY, Refuse),
        fact("tasks/list", Request, LEGACY, Refuse),
        fact("tasks/result", Request, LEGACY, Refuse),
    ]
};

/// What begins so is between a hub and whoever talks to it, and goes no further either way.
const OWN: &str = "lumen/";

/// Returns whether a method is a hub's own matter.
pub fn is_own(method: &str) -> bool {
    method.starts_with(OWN)
}

/// Returns what a hub does with a message of a client. What is not known is forwarded: the server may know it.
pub fn from_client(method: &str, is_request: bool) -> FromClient {
    if is_own(method) {
        return FromClient::Own;
    }
    match find(&FROM_CLIENT, method) {
        Some(fact) if (fact.kind == Kind::Request) == is_request => fact.handling,
        Some(fact) if fact.kind == Kind::Request => FromClient::Drop,
        _ => FromClient::Forward,
    }
}

/// Returns what a hub does with a message of a server. A request that is not known is refused, because nobody tells
/// which client it is for; a notification that is not known is for all.
pub fn from_server(method: &str, is_request: bool) -> FromServer {
    match find(&FROM_SERVER, method) {
        Some(fact) if (fact.kind == Kind::Request) == is_request => fact.handling,
        _ if is_request => FromServer::Refuse,
        Some(_) => FromServer::Drop,
        None if is_own(method) => FromServer::Drop,
        None => FromServer::ToAll,
    }
}

impl Era {
    /// Returns the era that a client opens with its first message, of this method; `declares_version` tells whether
    /// there is something at [`paths::PROTOCOL_VERSION`](super::paths::PROTOCOL_VERSION). `None`: it is plain
    /// JSON-RPC, and decides nothing.
    pub fn of_opening(method: &str, declares_version: bool) -> Option<Self> {
        match method {
            "initialize" => Some(Self::Legacy),
            _ if declares_version || is_modern_only(method) => Some(Self::Modern),
            _ => None,
        }
    }
}

/// Returns whether clients send it to modern servers only.
fn is_modern_only(method: &str) -> bool {
    find(&FROM_CLIENT, method).is_some_and(|fact| fact.when == MODERN)
}

fn find<'a, T>(facts: &'a [Fact<T>], method: &str) -> Option<&'a Fact<T>> {
    let at = facts.binary_search_by_key(&method, |fact| fact.method).ok()?;
    facts.get(at)
}
