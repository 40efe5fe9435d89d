//! Every bound in one place, with the memory it costs at worst.

use core::time::Duration;

/// Bytes a port reads at a time. Worst case: one such block a port.
pub const READ_CHUNK: usize = 64 * 1024;

/// The largest message taken from a peer, in bytes of payload or line. Worst case: twice this while one
/// partial message grows, on each port.
pub const MAX_MESSAGE: usize = 64 * 1024 * 1024;

/// The largest line sent to a server that speaks JSON: servers built on the TypeScript SDK die on a line above
/// 10 MiB. Costs no memory.
pub const MAX_LINE_TO_SERVER: usize = 10 * 1024 * 1024 - 1;

/// The most bytes of one oversize message that are skipped before its port is closed. Costs no memory: what
/// is skipped is scanned for its id and dropped.
pub const MAX_SKIP: u64 = 1024 * 1024 * 1024;

/// Bytes queued for one port before the other side is no longer read. Worst case: this, plus one message,
/// plus what one [`READ_CHUNK`] decodes to.
pub const MAX_QUEUE: usize = 1024 * 1024;

/// Bytes of messages kept for a second start until the first real answer. Worst case: this plus one message.
pub const MAX_KEPT: usize = 1024 * 1024;

/// Messages shorter than this are copied out of a read block; a slice would pin the whole block.
pub const COPY_BELOW: usize = 4 * 1024;

/// Texts shorter than this travel as they are, not as values: they are little more than an envelope (a ping, an empty answer,
/// most notifications), of which the codec would save some 20 bytes, while writing and reading values would be a quarter of
/// all the work that they are here. Costs no memory.
pub const MIN_COMPRESSED: usize = 80;

/// Bytes of ids remembered for requests in flight one way, with what it takes to remember each. One more is
/// answered with an error.
pub const MAX_OWED: usize = 4 * 1024 * 1024;

/// Requests in flight to one server, however small. Worst case: as many entries of an id map; what an entry holds
/// for its client counts as [`MAX_OWED`].
pub const MAX_IN_FLIGHT: usize = 64 * 1024;

/// The longest id token taken, in bytes as spelled. A longer one is refused.
pub const MAX_ID: usize = 1024;

/// Bytes of a noise line or other foreign text that are kept for a log.
pub const MAX_EXCERPT: usize = 256;

/// Events that wait for the owner before further ones are only counted.
pub const MAX_EVENTS: usize = 1024;

/// The deepest nesting of arrays and objects in a JSON text. Worst case: one bit a level.
pub const MAX_DEPTH: usize = 1024;

/// The deepest nesting of arrays and objects in a value of the binary codec, which other implementations walk
/// by recursion too. Worst case: one stack frame of a deserializer a level.
pub const MAX_VALUE_DEPTH: usize = 128;

/// How long an opening probe holds messages back for its ACK.
pub const PROBE_TIMEOUT: Duration = Duration::from_millis(500);

/// How long a probed server may leave the first request unanswered before it is started again without a probe.
pub const PROBED_ANSWER_TIMEOUT: Duration = Duration::from_secs(20);

/// How long a server may leave the first request unanswered before the session is given up.
pub const START_TIMEOUT: Duration = Duration::from_secs(120);

/// How long a server is kept after the client closed its input while answers are owed, and how long the last
/// output waits for a client that reads none of it.
pub const EOF_GRACE: Duration = Duration::from_secs(30);

/// How long a server is given after its input was closed, and again after SIGTERM.
pub const STOP_STEP: Duration = Duration::from_secs(2);

/// How long a server is given after SIGTERM when we were told to end ourselves; an SDK above us gives 2 s.
pub const TERMINATE_STEP: Duration = Duration::from_millis(1500);

/// The same for a hop that stands behind another one: that one kills us after [`TERMINATE_STEP`], and then nobody
/// is left to end our server.
pub const INNER_TERMINATE_STEP: Duration = Duration::from_millis(1000);

/// How long the output of a server that has exited may stay open before it counts as ended: something it
/// started may have inherited it.
pub const DRAIN_TIMEOUT: Duration = Duration::from_millis(500);

/// How long requests are still read and answered with an error after the server is gone for good.
pub const LINGER: Duration = Duration::from_millis(300);

/// How long a connection that was lost may take to be made again, all tries together.
pub const RECONNECT_LIMIT: Duration = Duration::from_secs(30);

/// What a server on a connection that was made again has at least until something must be heard of it.
pub const RECONNECT_PATIENCE: Duration = Duration::from_secs(2);

/// The wait before the second try; doubled with every further one. The first is at once.
pub const RECONNECT_BASE: Duration = Duration::from_millis(100);

/// The longest such wait.
pub const RECONNECT_CAP: Duration = Duration::from_secs(2);

/// How long a connection must have lasted for the tries before it to be forgotten.
pub const RECONNECT_RESET_AFTER: Duration = Duration::from_secs(5);

/// The wait before a child that died is started again; doubled with every further death.
pub const BACKOFF_BASE: Duration = Duration::from_secs(3);

/// The longest such wait.
pub const BACKOFF_CAP: Duration = Duration::from_secs(30);

/// How long a child must have been of use for its earlier deaths to be forgotten.
pub const BACKOFF_RESET_AFTER: Duration = Duration::from_secs(30);

/// How long a request of a client may stay unanswered by a shared server, unless it reports progress.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(300);

/// How long the owner of a hub may leave a request to the hub itself unanswered.
pub const OWN_TIMEOUT: Duration = Duration::from_secs(5);

/// How long no progress extends that beyond.
pub const REQUEST_CAP: Duration = Duration::from_secs(3600);

/// How long a request waits for a shared server that is down.
pub const HOLD_TIMEOUT: Duration = Duration::from_secs(30);

/// When to try again, if nothing better is known.
pub const RETRY_AFTER: Duration = Duration::from_secs(3);

/// Bytes of messages that wait for a shared server which is not ready. Worst case: this plus one message, for each
/// server.
pub const MAX_HELD: usize = 4 * 1024 * 1024;

/// Requests of one client in flight to shared servers, and as many of servers to it. Worst case for each: two tokens
/// of [`MAX_ID`].
pub const MAX_CLIENT_CALLS: usize = 4096;

/// Bytes kept for the subscriptions of one client, URIs and the requests that opened them, and for its handshake if it has
/// a server to itself.
pub const MAX_CLIENT_KEPT: usize = 1024 * 1024;

/// Requests to a server behind HTTP that are under way at once; more wait in the queue, and what is no request passes
/// them.
pub const MAX_EXCHANGES: usize = 128;

/// Bytes of those requests, kept until they are answered, before more wait. Worst case: this, plus one message.
pub const MAX_RUNNING: usize = 2 * MAX_MESSAGE;

/// Exchanges with a server behind HTTP at once: those requests, notifications, answers, what follows an answer in its
/// stream. Worst case: as many connections, and two of our own; for [`POST_PATIENCE`] as many messages.
pub const MAX_POSTS: usize = 256;

/// Bytes of unfinished HTTP responses that are kept. When there are more, only the largest is read on. Worst case:
/// this, plus one message.
pub const MAX_COLLECTED: usize = 2 * MAX_MESSAGE;

/// Bytes of a refusing HTTP response that are read in case it is a JSON-RPC error.
pub const MAX_ERROR_BODY: usize = 1024 * 1024;

/// Bytes of an HTTP response that are quoted in an error.
pub const MAX_QUOTE: usize = 1024;

/// Bytes of a header's value that are kept: a session id, an event id.
pub const MAX_HEADER: usize = 4 * 1024;

/// Bytes of tools' parameters remembered because they also go into headers.
pub const MAX_TOOLS: usize = 1024 * 1024;

/// Pages of a list of tools that are fetched anew for a call refused over its headers.
pub const MAX_TOOL_PAGES: u32 = 64;

/// How often in a row an HTTP stream is opened again without anything new in it.
pub const MAX_RESUMES: u32 = 8;

/// The wait before an HTTP stream is opened again, unless the server named another; doubled with every try that
/// brought nothing.
pub const RETRY_BASE: Duration = Duration::from_secs(1);

/// The shortest such wait, whatever the server named: one that names none at all and ends each stream at once would
/// keep both sides busy with nothing else.
pub const RETRY_FLOOR: Duration = Duration::from_millis(100);

/// The longest such wait, unless the server named a longer one.
pub const RETRY_CAP: Duration = Duration::from_secs(30);

/// How long an HTTP stream may go on after everything asked was answered in it.
pub const STREAM_LINGER: Duration = Duration::from_secs(5);

/// How long a POST that asks for nothing, or one of our own, may take.
pub const POST_PATIENCE: Duration = Duration::from_secs(30);

/// How long the end of an HTTP session is waited for.
pub const DELETE_PATIENCE: Duration = Duration::from_secs(2);

/// The same when we were told to end.
pub const QUICK_DELETE_PATIENCE: Duration = Duration::from_millis(500);

/// Clients of one hub.
pub const MAX_CLIENTS: usize = 1024;

/// Clients beyond those that a hub has room for: they may ask how things stand, and are told that it is full. Worst case
/// for each: as for a client.
pub const MAX_VISITORS: usize = 8;

/// How long such a client may stay.
pub const VISIT_TIMEOUT: Duration = Duration::from_secs(5);

/// Bytes queued for one client of a hub before it is sent away as one that does not read. Worst case: this plus one
/// message.
pub const MAX_CLIENT_QUEUE: usize = 16 * 1024 * 1024;

/// Bytes queued for all clients of a hub before the one with the most is sent away. Worst case: this plus one
/// message.
pub const MAX_HUB_QUEUE: usize = 256 * 1024 * 1024;

/// How long a hub that was told to end waits for answers.
pub const DRAIN_GRACE: Duration = Duration::from_secs(5);
