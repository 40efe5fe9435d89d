//! Every method of the official schemas is classified, and nothing else is.

use std::collections::BTreeSet;
use std::vec::Vec;

use super::method::{FROM_CLIENT, FROM_SERVER, Fact, Kind, When};
use super::*;

/// What the schemas list for one sender and one kind: methods of the legacy revisions, and of the modern one.
struct Listed {
    legacy: &'static [&'static str],
    modern: &'static [&'static str],
}

/// `ClientRequest` of 2024-11-05 to 2025-11-25 (which added the tasks), and of 2026-07-28.
const CLIENT_REQUESTS: Listed = Listed {
    legacy: &[
        "completion/complete",
        "initialize",
        "logging/setLevel",
        "ping",
        "prompts/get",
        "prompts/list",
        "resources/list",
        "resources/read",
        "resources/subscribe",
        "resources/templates/list",
        "resources/unsubscribe",
        "tasks/cancel",
        "tasks/get",
        "tasks/list",
        "tasks/result",
        "tools/call",
        "tools/list",
    ],
    modern: &[
        "completion/complete",
        "prompts/get",
        "prompts/list",
        "resources/list",
        "resources/read",
        "resources/templates/list",
        "server/discover",
        "subscriptions/listen",
        "tools/call",
        "tools/list",
    ],
};

/// `ClientNotification`.
const CLIENT_NOTIFICATIONS: Listed = Listed {
    legacy: &[
        "notifications/cancelled",
        "notifications/initialized",
        "notifications/progress",
        "notifications/roots/list_changed",
        "notifications/tasks/status",
    ],
    modern: &["notifications/cancelled"],
};

/// `ServerRequest`; elicitation since 2025-06-18.
const SERVER_REQUESTS: Listed = Listed {
    legacy: &[
        "elicitation/create",
        "ping",
        "roots/list",
        "sampling/createMessage",
        "tasks/cancel",
        "tasks/get",
        "tasks/list",
        "tasks/result",
    ],
    modern: &[],
};

/// `ServerNotification`.
const SERVER_NOTIFICATIONS: Listed = Listed {
    legacy: &[
        "notifications/cancelled",
        "notifications/elicitation/complete",
        "notifications/message",
        "notifications/progress",
        "notifications/prompts/list_changed",
        "notifications/resources/list_changed",
        "notifications/resources/updated",
        "notifications/tasks/status",
        "notifications/tools/list_changed",
    ],
    modern: &[
        "notifications/cancelled",
        "notifications/message",
        "notifications/progress",
        "notifications/prompts/list_changed",
        "notifications/resources/list_changed",
        "notifications/resources/updated",
        "notifications/subscriptions/acknowledged",
        "notifications/tools/list_changed",
    ],
};

/// Compares a table with what the schemas list, in both directions.
fn compare<T>(facts: &[Fact<T>], kind: Kind, listed: &Listed) {
    let of = |era| -> BTreeSet<&str> {
        let there =
            |fact: &&Fact<T>| fact.kind == kind && [When::Always, When::Only(era)].contains(&fact.when);
        facts.iter().filter(there).map(|fact| fact.method).collect()
    };
    for (era, methods) in [(Era::Legacy, listed.legacy), (Era::Modern, listed.modern)] {
        let (known, listed) = (of(era), methods.iter().copied().collect());
        let missing: Vec<_> = known.symmetric_difference(&listed).collect();
        assert!(
            missing.is_empty(),
            "{era:?} {kind:?}: only in the table or only in the schemas: {missing:?}"
        );
    }
}

#[test]
fn the_tables_hold_what_the_schemas_list() {
    compare(&FROM_CLIENT, Kind::Request, &CLIENT_REQUESTS);
    compare(&FROM_CLIENT, Kind::Notification, &CLIENT_NOTIFICATIONS);
    compare(&FROM_SERVER, Kind::Request, &SERVER_REQUESTS);
    compare(&FROM_SERVER, Kind::Notification, &SERVER_NOTIFICATIONS);
}

#[test]
fn the_tables_are_sorted_and_name_nothing_twice() {
    assert!(FROM_CLIENT.iter().map(|fact| fact.method).is_sorted_by(|one, next| one < next));
    assert!(FROM_SERVER.iter().map(|fact| fact.method).is_sorted_by(|one, next| one < next));
}

#[test]
fn notifications_and_only_they_are_named_so() {
    let named = |method: &str| method.starts_with("notifications/");
    assert!(FROM_CLIENT.iter().all(|fact| named(fact.method) == (fact.kind == Kind::Notification)));
    assert!(FROM_SERVER.iter().all(|fact| named(fact.method) == (fact.kind == Kind::Notification)));
}

/// What has a meaning of its own. All other requests and notifications of clients are forwarded.
#[test]
fn what_clients_send_is_forwarded_but_for_these() {
    let handled = [
        ("initialize", FromClient::Initialize),
        ("logging/setLevel", FromClient::SetLevel),
        ("notifications/cancelled", FromClient::Cancelled),
        ("notifications/initialized", FromClient::Initialized),
        ("notifications/progress", FromClient::Progress),
        ("notifications/tasks/status", FromClient::Drop),
        ("resources/subscribe", FromClient::Subscribe),
        ("resources/unsubscribe", FromClient::Unsubscribe),
        ("server/discover", FromClient::Discover),
        ("subscriptions/listen", FromClient::Listen),
        ("tasks/cancel", FromClient::Tasks),
        ("tasks/get", FromClient::Tasks),
        ("tasks/list", FromClient::Tasks),
        ("tasks/result", FromClient::Tasks),
    ];
    let all =
        [CLIENT_REQUESTS, CLIENT_NOTIFICATIONS].into_iter().flat_map(|l| [l.legacy, l.modern]).flatten();
    for &method in all {
        let expected = handled.iter().find(|(name, _)| *name == method).map(|(_, handling)| *handling);
        let is_request = !method.starts_with("notifications/");
        assert_eq!(from_client(method, is_request), expected.unwrap_or(FromClient::Forward), "{method}");
    }
    for method in ["lumen/status", "lumen/"] {
        assert_eq!(
            (from_client(method, true), from_client(method, false)),
            (FromClient::Own, FromClient::Own)
        );
    }
    for method in
        ["", "lumen", "tools", "tools/call/", "Initialize", "acme/x", "roots/list", "notifications/x"]
    {
        assert_eq!(from_client(method, true), FromClient::Forward, "{method}");
        assert_eq!(from_client(method, false), FromClient::Forward, "{method}");
    }
}

#[test]
fn what_servers_send_goes_to_whom_it_is_for() {
    use Capability::{Elicitation, Roots, Sampling};
    let handled = [
        ("elicitation/create", FromServer::Reverse(Elicitation)),
        ("notifications/cancelled", FromServer::Cancelled),
        ("notifications/elicitation/complete", FromServer::ToDeclared(Elicitation)),
        ("notifications/message", FromServer::Log),
        ("notifications/progress", FromServer::Progress),
        ("notifications/prompts/list_changed", FromServer::ListChanged),
        ("notifications/resources/list_changed", FromServer::ListChanged),
        ("notifications/resources/updated", FromServer::Updated),
        ("notifications/subscriptions/acknowledged", FromServer::Subscription),
        ("notifications/tasks/status", FromServer::Drop),
        ("notifications/tools/list_changed", FromServer::ListChanged),
        ("ping", FromServer::Ping),
        ("roots/list", FromServer::Reverse(Roots)),
        ("sampling/createMessage", FromServer::Reverse(Sampling)),
        ("tasks/cancel", FromServer::Refuse),
        ("tasks/get", FromServer::Refuse),
        ("tasks/list", FromServer::Refuse),
        ("tasks/result", FromServer::Refuse),
    ];
    let all: BTreeSet<_> = [SERVER_REQUESTS, SERVER_NOTIFICATIONS]
        .into_iter()
        .flat_map(|l| [l.legacy, l.modern])
        .flatten()
        .collect();
    assert!(all.into_iter().eq(handled.iter().map(|(method, _)| method)));
    for (method, handling) in handled {
        assert_eq!(from_server(method, !method.starts_with("notifications/")), handling, "{method}");
    }
    for method in ["", "tools/list", "acme/x", "notifications/x"] {
        assert_eq!(from_server(method, true), FromServer::Refuse, "{method}");
        assert_eq!(from_server(method, false), FromServer::ToAll, "{method}");
    }
    assert_eq!(from_server("lumen/x", true), FromServer::Refuse);
    assert_eq!(from_server("lumen/x", false), FromServer::Drop);
}

/// A request without an id, and a notification with one.
#[test]
fn a_method_of_the_wrong_kind_has_none_of_its_meaning() {
    assert_eq!(from_client("initialize", false), FromClient::Drop);
    assert_eq!(from_client("tools/call", false), FromClient::Drop);
    assert_eq!(from_client("notifications/initialized", true), FromClient::Forward);
    assert_eq!(from_client("notifications/cancelled", true), FromClient::Forward);
    assert_eq!(from_server("ping", false), FromServer::Drop);
    assert_eq!(from_server("sampling/createMessage", false), FromServer::Drop);
    assert_eq!(from_server("notifications/message", true), FromServer::Refuse);
}

#[test]
fn capabilities_have_the_names_they_are_declared_by() {
    assert_eq!(Capability::ALL.map(Capability::as_str), ["roots", "sampling", "elicitation"]);
}

#[test]
fn the_first_message_decides_the_era() {
    assert_eq!(Era::of_opening("initialize", false), Some(Era::Legacy));
    assert_eq!(Era::of_opening("initialize", true), Some(Era::Legacy));
    assert_eq!(Era::of_opening("tools/list", true), Some(Era::Modern));
    assert_eq!(Era::of_opening("acme/anything", true), Some(Era::Modern));
    // A server of the other era may not survive these, even if their declaration is missing.
    assert_eq!(Era::of_opening("server/discover", false), Some(Era::Modern));
    assert_eq!(Era::of_opening("subscriptions/listen", false), Some(Era::Modern));
    for plain in ["tools/list", "ping", "acme/anything", "notifications/initialized", ""] {
        assert_eq!(Era::of_opening(plain, false), None, "{plain}");
    }
}
