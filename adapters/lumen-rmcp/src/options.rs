//! How a server is started.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use lumen_tokio::{CommandSpec, Mode, ServerConfig, Stderr, Target};

/// A server to start, and how it is asked for LUMEN.
///
/// Unless told otherwise it is asked before the first message, which waits half a second at most for the answer; a
/// server that does not survive the question is started once more without.
#[derive(Debug)]
pub struct ChildOptions {
    command: CommandSpec,
    force_json_rpc: bool,
    probe_timeout: Duration,
}

impl ChildOptions {
    /// Names the program; see [`CommandSpec::new`]. It inherits the environment, the working directory and standard
    /// error.
    pub fn new(command: impl Into<OsString>) -> Self {
        CommandSpec::new(command).into()
    }

    /// Adds one argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.command = self.command.arg(arg);
        self
    }

    /// Adds several arguments.
    #[must_use]
    pub fn args<A: Into<OsString>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.command = self.command.args(args);
        self
    }

    /// Adds or replaces one environment variable.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.command = self.command.env(name, value);
        self
    }

    /// Starts it in this directory.
    #[must_use]
    pub fn cwd(mut self, dir: impl Into<PathBuf>) -> Self {
        self.command = self.command.cwd(dir);
        self
    }

    /// Says what becomes of its standard error.
    #[must_use]
    pub fn stderr(mut self, stderr: Stderr) -> Self {
        self.command = self.command.stderr(stderr);
        self
    }

    /// Sets whether it is not asked for LUMEN at all.
    #[must_use]
    pub const fn force_json_rpc(mut self, force: bool) -> Self {
        self.force_json_rpc = force;
        self
    }

    /// Sets how long the first message waits for the answer to that question.
    #[must_use]
    pub const fn probe_timeout(mut self, timeout: Duration) -> Self {
        self.probe_timeout = timeout;
        self
    }

    pub(crate) fn into_parts(self) -> (Target, ServerConfig) {
        let target = Target::Command(self.command);
        let config = ServerConfig::new(target.behind(), Mode::Auto)
            .with_force_json_rpc(self.force_json_rpc)
            .with_probe_timeout(self.probe_timeout);
        (target, config)
    }
}

/// With what only a [`CommandSpec`] can say, such as an environment that is not inherited.
impl From<CommandSpec> for ChildOptions {
    fn from(command: CommandSpec) -> Self {
        Self { command, force_json_rpc: false, probe_timeout: lumen_proto::limits::PROBE_TIMEOUT }
    }
}
