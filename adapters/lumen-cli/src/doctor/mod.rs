//! `doctor`: starts a server by itself, several times, and reports what a client should know of it.

mod cut;
mod exam;
mod finding;
mod report;
mod slips;
mod start;
mod talk;
mod visit;

use std::io::{self, IsTerminal as _};
use std::rc::Rc;

use lumen_os::SpawnError;

use crate::args::{Doctor, print};
use crate::exit::Exit;
use crate::relay::{bare_spec, signals};
use crate::report::say;
use exam::Exam;
use report::Report;

/// Why an examination ends early.
#[derive(Debug)]
enum Stop {
    NotStarted(SpawnError),
    /// Somebody wants this process to end.
    Interrupted,
    Broken(io::Error),
}

impl From<SpawnError> for Stop {
    fn from(error: SpawnError) -> Self {
        Self::NotStarted(error)
    }
}

pub(crate) fn run(doctor: &Doctor) -> Exit {
    match examine(doctor) {
        Ok(report) => {
            let is_healthy = report.findings.is_empty();
            let printed = print(&if doctor.json { report.json() } else { report.text() });
            if printed == Exit::Ok && !is_healthy { Exit::Failed } else { printed }
        }
        Err(Stop::NotStarted(error)) => {
            say(&format!("{error}; try the command by itself, with a full path"));
            Exit::Usage
        }
        Err(Stop::Interrupted) => {
            say("told to end before all was seen; nothing is reported");
            Exit::Failed
        }
        Err(Stop::Broken(error)) => {
            say(&format!("{error}; check the limits on memory and descriptors"));
            Exit::Failed
        }
    }
}

fn examine(doctor: &Doctor) -> Result<Report, Stop> {
    let is_seen = io::stderr().is_terminal();
    // Its arguments may be secrets, and a report is made to be shown.
    let program = doctor.server.command.first().map(|name| name.to_string_lossy().into_owned());
    let mut exam = Exam {
        spec: || bare_spec(&doctor.server),
        patience: doctor.timeout(),
        first_patience: doctor.server.start_timeout(),
        interrupts: Rc::new(signals().map_err(Stop::Broken)?),
        progress: |what: &str| {
            if is_seen {
                say(&format!("trying {what}"));
            }
        },
        report: Report { program: program.unwrap_or_default(), ..Report::default() },
        stays: false,
    };
    exam.run()?;
    Ok(exam.report)
}
