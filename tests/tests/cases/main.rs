//! Failures that MCP plumbing has in the field, by their numbers, on real processes and real pipes.
//!
//! Each runs through `connect`, through `wrap` with a client that speaks JSON, and where it adds something through
//! both, so that LUMEN frames flow between them.
//!
//! | tests | the failure |
//! |---|---|
//! | `o_01` | text that is no message on the server's stdout |
//! | `o_02` | characters cut between reads |
//! | `o_03` | CRLF and blank lines |
//! | `o_04` | large lines, and lines above the limits |
//! | `o_05` | both pipes full |
//! | `o_06` | a flood on stderr |
//! | `o_07` | a server that dies inside a line |
//! | `o_20` | a client that vanishes, a server that leaves during the handshake |
//! | `o_21` | end of input while answers are owed |
//! | `o_22` | end of input with nothing owed |
//! | `o_23` | servers that ignore being told to end, and polite ones |
//! | `o_24` | what the server itself has started |
//! | `o_30` | arguments, environment, working directory |

mod argv;
mod bytes;
mod lifecycle;
mod noise;
mod support;
