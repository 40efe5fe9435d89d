//! The guard of a server: this program started again, so that the server's whole tree ends even when `lumen` is killed.

use std::process::ExitCode;

use lumen_os::{CommandSpec, guard};

use crate::exit::Exit;
use crate::report::say;

/// The first argument of a guard. It is no command for people, so the command line's parser does not know it: what
/// follows are the server's words and nothing else.
const WORD: &str = "guard";

/// Puts a server under a guard.
pub(crate) fn guarded(spec: CommandSpec) -> CommandSpec {
    // This very file, even if another one has its name by now.
    spec.guarded_by("/proc/self/exe", WORD)
}

/// Does a guard's work, if this process was started for it.
pub(crate) fn try_run() -> Option<ExitCode> {
    let mut words = std::env::args_os().skip(1);
    if words.next()? != WORD {
        return None;
    }
    Some(match guard::run(words) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            say(&format!(
                "cannot guard: {error}; lumen starts guards itself, there is no use for one by hand"
            ));
            Exit::Usage.into()
        }
    })
}
