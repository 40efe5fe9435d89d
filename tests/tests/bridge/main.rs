//! `lumen bridge` against an HTTP server that does what it is told, on real sockets and real pipes: failures that bridges
//! have in the field, by their numbers, and what else a bridge promises.
//!
//! | tests | what |
//! |---|---|
//! | `o_02`, `o_03`, `o_04` | characters cut between reads, CRLF, large messages |
//! | `o_05` | an agent that does not read, a server that does not read |
//! | `o_11`, `o_12`, `o_13` | ids 0, "" and null; numbers of any size |
//! | `o_20`, `o_21`, `o_22` | an agent that vanishes, end of input with and without answers owed |
//! | `o_25` | a session that the server has forgotten |
//! | `o_26` | answers that are failures, or are no answers |
//! | `o_27` | notifications, however they are answered |
//! | `o_28` | event streams |
//! | `o_29` | the version header |
//! | `o_30` | headers from the environment, secrets |
//! | others | starting, redirects, TLS, HTTP/2, proxies, order, cancelling, the stateless revision |

mod ending;
mod failures;
mod messages;
mod modern;
mod redirects;
mod server;
mod sessions;
mod starting;
mod streams;
#[path = "../cases/support.rs"]
#[expect(
    dead_code,
    unused_macros,
    unused_imports,
    reason = "shared with the suite of cases, which uses all of it"
)]
mod support;
mod transport;
