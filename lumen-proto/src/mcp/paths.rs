//! Where values that matter to a hub are inside of a message, a key for each level from its top.

/// In `notifications/cancelled`, both ways: the id of the request that is cancelled.
pub const CANCELLED_ID: &[&str] = &["params", "requestId"];

/// In any request: the token its sender wants progress told under.
pub const ASKED_PROGRESS: &[&str] = &["params", "_meta", "progressToken"];

/// In `notifications/progress`: the token of the request it belongs to.
pub const PROGRESS_TOKEN: &[&str] = &["params", "progressToken"];

/// In what a server sends on a subscription: the id of the `subscriptions/listen` that opened it.
pub const SUBSCRIPTION: &[&str] = &["params", "_meta", "io.modelcontextprotocol/subscriptionId"];

/// In the last answer on a subscription: the same id.
pub const ENDED_SUBSCRIPTION: &[&str] = &["result", "_meta", "io.modelcontextprotocol/subscriptionId"];

/// In every modern request: the revision it is of.
pub const PROTOCOL_VERSION: &[&str] = &["params", "_meta", "io.modelcontextprotocol/protocolVersion"];

/// In every modern request: what its client can do.
pub const CLIENT_CAPABILITIES: &[&str] = &["params", "_meta", "io.modelcontextprotocol/clientCapabilities"];

/// In a modern request: the level of log messages it wants.
pub const ASKED_LEVEL: &[&str] = &["params", "_meta", "io.modelcontextprotocol/logLevel"];

/// In `logging/setLevel` and `notifications/message`: the level.
pub const LEVEL: &[&str] = &["params", "level"];

/// In `resources/subscribe`, `resources/unsubscribe` and `notifications/resources/updated`: the resource.
pub const RESOURCE: &[&str] = &["params", "uri"];
