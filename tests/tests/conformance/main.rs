//! One suite for every binding: the same stories on each runtime, told in the same words.
//!
//! What the user of a binding sees, and what the peer sees on the wire, is written down and compared with
//! `transcripts/NAME.txt`, byte by byte; a story that goes another way on one runtime differs there. With `TRANSCRIBE=1`
//! the files are written instead: look at what changed, it is the behaviour of every binding. Left out of a transcript is
//! only what must differ from run to run: process ids, paths, how bytes were cut.
//!
//! A runtime joins by a file in `runtimes/` that says how it is driven, and a line in [`everywhere`].

mod agent;
mod alone;
mod blocking;
mod face;
mod over;
mod polls;
mod runtimes;
mod scenarios;
mod teller;

use face::Face;
use runtimes::{AsyncStd, Smol, Std, StdLooking, TokioCurrentThread, TokioMultiThread, Uring, UringLooking};
use teller::Log;

/// Tells a story on each runtime.
macro_rules! everywhere {
    ($($module:ident { $($story:ident)* })*) => {$($(
        mod $story {
            use crate::scenarios::$module::$story as story;
            everywhere!(@ $story
                std Std
                std_looking StdLooking
                uring Uring
                uring_looking UringLooking
                tokio_current_thread TokioCurrentThread
                tokio_multi_thread TokioMultiThread
                smol Smol
                async_std AsyncStd
            );
        }
    )*)*};
    (@ $story:ident $($name:ident $runtime:ident)*) => {$(
        #[test]
        fn $name() {
            crate::tell::<crate::$runtime>(
                stringify!($story),
                concat!(stringify!($story), "::", stringify!($name)),
                story,
            );
        }
    )*};
}

everywhere! {
    negotiation {
        auto
        offer
        off
        late_acknowledgement
        killed_by_the_probe
        deaf_after_the_probe
    }
    bytes {
        one_byte_at_a_time
        large_messages_in_lumen
        large_messages_in_json
        half_close
        both_pipes_full
        own_standard_streams
        over_tcp
    }
    cancellation {
        dropped_calls_lose_nothing
        dropped_sessions_leave_nothing
    }
    ending {
        death_of_the_child
        what_cannot_be_started
        escalation
        descriptors_stay_flat
    }
    mux {
        many_clients
        a_stalled_client
        a_busy_listener
        teardown_in_flight
    }
}

fn tell<F: Face>(story: &str, test: &str, tell: fn(&F, &Log)) {
    if !F::is_here() {
        return;
    }
    let log = Log::new(test);
    tell(&F::new(), &log);
    log.compare(story);
}
