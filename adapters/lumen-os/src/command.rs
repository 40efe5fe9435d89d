//! What to start or where to connect, as data: parsed once, used for every start.

use std::ffi::{OsStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};

use lumen_proto::supervisor::Behind;
use lumen_proto::{OpenError, OpenErrorKind};

use crate::guard::Guard;

/// What a machine's `Spawn` leads to.
#[derive(Debug)]
pub enum Target {
    /// Start this command and speak over its standard streams.
    Command(CommandSpec),
    /// Connect to the Unix stream socket at this path.
    Unix(PathBuf),
    /// Connect to this `host:port` over TCP; an IPv6 address stands in brackets.
    Tcp(String),
}

impl Target {
    /// Returns what stands behind a port that leads there.
    pub const fn behind(&self) -> Behind {
        match self {
            Self::Command(_) => Behind::Process,
            Self::Unix(_) | Self::Tcp(_) => Behind::Socket,
        }
    }

    /// Hands a line of standard error to whoever wanted to hear of it.
    pub(crate) fn on_stderr(target: &mut Option<Self>, line: &[u8]) {
        if let Some(Self::Command(spec)) = target {
            spec.stderr_mut().on_line(line);
        }
    }
}

/// What a `Spawn` comes to without a target, for the machine and in words.
pub(crate) fn nothing_to_open() -> (OpenError, String) {
    let error = OpenError { kind: OpenErrorKind::NotFound, errno: 0 };
    (error, "there is nothing to start or to connect to".to_owned())
}

/// Takes one line of a child's standard error, without its line feed.
pub type LineFn = Box<dyn FnMut(&[u8]) + Send>;

/// What becomes of a child's standard error.
#[derive(Default)]
pub enum Stderr {
    /// It is this process's own standard error; no tail is kept.
    #[default]
    Inherit,
    /// It is read and only its tail is kept.
    Ignore,
    /// It is read, its tail is kept, and each line goes to this function. A line longer than
    /// [`MAX_STDERR_LINE`](crate::MAX_STDERR_LINE) arrives in pieces.
    Lines(LineFn),
}

impl Stderr {
    /// Hands one line to the function, if there is one.
    pub fn on_line(&mut self, line: &[u8]) {
        if let Self::Lines(function) = self {
            function(line);
        }
    }
}

impl fmt::Debug for Stderr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Inherit => "Inherit",
            Self::Ignore => "Ignore",
            Self::Lines(_) => "Lines",
        })
    }
}

/// A program, its exact arguments, and the surroundings it starts in. No shell is involved.
///
/// The environment of a child is this process's own at the time of the start (none of it after
/// [`env_clear`](Self::env_clear)), with the variables given here added or replaced; an empty value is set,
/// not unset. `Debug` shows the names of these variables but never their values.
pub struct CommandSpec {
    pub(crate) program: OsString,
    pub(crate) args: Vec<OsString>,
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) env_clear: bool,
    pub(crate) cwd: Option<PathBuf>,
    pub(crate) stderr: Stderr,
    pub(crate) guard: Option<Guard>,
}

impl CommandSpec {
    /// Names the program. A name without a slash is looked up in the `PATH` that the child will have; a
    /// relative path with a slash counts from the child's working directory.
    pub fn new(program: impl Into<OsString>) -> Self {
        Self {
            program: program.into(),
            args: Vec::new(),
            env: Vec::new(),
            env_clear: false,
            cwd: None,
            stderr: Stderr::default(),
            guard: None,
        }
    }

    /// Adds one argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds several arguments.
    #[must_use]
    pub fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// Adds or replaces one environment variable.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Starts the child without this process's environment.
    #[must_use]
    pub fn env_clear(mut self) -> Self {
        self.env_clear = true;
        self
    }

    /// Starts the child in this directory.
    #[must_use]
    pub fn cwd(mut self, dir: impl Into<PathBuf>) -> Self {
        self.cwd = Some(dir.into());
        self
    }

    /// Says what becomes of the child's standard error.
    #[must_use]
    pub fn stderr(mut self, stderr: Stderr) -> Self {
        self.stderr = stderr;
        self
    }

    /// Starts the command below a guard, which ends all that it has started, also what has left its process group, and
    /// also after this process was killed. The guard is `guard`, usually `/proc/self/exe`, started with `word` as its
    /// first argument; it has to call [`guard::run`](crate::guard::run) with the others.
    ///
    /// Nothing else changes: the command gets its streams, arguments, environment and directory as without a guard.
    #[must_use]
    pub fn guarded_by(mut self, guard: impl Into<OsString>, word: impl Into<OsString>) -> Self {
        self.guard = Some(Guard { program: guard.into(), word: word.into() });
        self
    }

    /// Returns the program as given.
    pub fn program(&self) -> &OsStr {
        &self.program
    }

    /// Returns the arguments as given.
    pub fn arguments(&self) -> &[OsString] {
        &self.args
    }

    /// Returns the working directory, if one was given.
    pub fn working_dir(&self) -> Option<&Path> {
        self.cwd.as_deref()
    }

    /// Returns where lines of the child's standard error go.
    pub fn stderr_mut(&mut self) -> &mut Stderr {
        &mut self.stderr
    }
}

impl fmt::Debug for CommandSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.env.iter().map(|(name, _)| name).collect();
        f.debug_struct("CommandSpec")
            .field("program", &self.program)
            .field("args", &self.args)
            .field("env", &names)
            .field("env_clear", &self.env_clear)
            .field("cwd", &self.cwd)
            .field("stderr", &self.stderr)
            .field("guard", &self.guard)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn debug_shows_no_value_of_the_environment() {
        let spec = CommandSpec::new("server").arg("-x").env("API_KEY", "hunter2");
        let shown = format!("{:?}", Target::Command(spec));
        assert!(shown.contains("API_KEY") && shown.contains("-x"), "{shown}");
        assert!(!shown.contains("hunter2"), "{shown}");
    }
}
