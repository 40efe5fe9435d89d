//! Failures that shared servers have in the field, by their numbers: a real `lumen mux` on either runtime, real child
//! programs, real Unix sockets. What the hub itself does about each is played in more detail in `hub_sim`.
//!
//! | tests | the failure |
//! |---|---|
//! | `o_07` | a server that dies inside a line |
//! | `o_08` | requests in flight when a server dies |
//! | `o_09`, `o_10` | requests and notifications while it is started again |
//! | `o_11`, `o_12` | ids that are taken for none, and none that is taken for one |
//! | `o_13` | numbers that are rounded |
//! | `o_14` | ids that look alike |
//! | `o_15` | cancelling |
//! | `o_16` | progress |
//! | `o_17` | several handshakes |
//! | `o_18` | a server that asks |
//! | `o_19` | a server that was started again and knows nothing |
//! | `o_20` | clients that vanish, a server that leaves during the handshake |
//! | `o_21` | the end of a client's input while answers are owed |
//! | `o_22` | the end with nothing owed |
//! | `o_23` | servers that ignore being told to end, and polite ones |
//! | `o_24` | what the server itself has started |

mod ids;
mod lifecycle;
mod sharing;
mod support;
