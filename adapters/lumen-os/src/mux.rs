//! What a multiplexer is to share, and how, as data: the same for every binding.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::Duration;

use lumen_driver::desk::Desk;
use lumen_driver::door::Door;
use lumen_driver::status::About;
use lumen_proto::endpoint::{HubConfig, ServerConfig};
use lumen_proto::negotiate::Mode;
use lumen_proto::supervisor::Behind;

use crate::listener::own_uid;
use crate::{CommandSpec, ListenError, Listener};

/// A Unix socket, the server that stands behind it, and how it is shared: what `lumen mux` has options for.
///
/// ```
/// use std::time::Duration;
///
/// use lumen_os::{CommandSpec, MuxSpec, Stderr};
///
/// let server = CommandSpec::new("uvx").args(["mcp-server-git"]).env("NO_COLOR", "1").stderr(Stderr::Ignore);
/// let spec = MuxSpec::new("/run/user/1000/git.sock", server)
///     .backoff(Duration::from_secs(1), Duration::from_secs(10))
///     .reset_after(Duration::from_secs(30))
///     .request_timeout(Some(Duration::from_secs(60)))
///     .idle_exit(Some(Duration::from_secs(600)));
/// # drop(spec);
/// ```
#[derive(Debug)]
pub struct MuxSpec {
    socket: PathBuf,
    command: CommandSpec,
    hub: HubConfig,
    others: BTreeSet<u32>,
    log: Option<PathBuf>,
}

impl MuxSpec {
    /// Shares the server that `command` starts with the clients of this user, and of root, that connect to `socket`.
    pub fn new(socket: impl Into<PathBuf>, command: CommandSpec) -> Self {
        let hub = HubConfig::new(ServerConfig::new(Behind::Process, Mode::Offer));
        Self { socket: socket.into(), command, hub, others: BTreeSet::new(), log: None }
    }

    /// Sets how the server is asked for LUMEN; otherwise its handshake carries an offer.
    #[must_use]
    pub const fn negotiate(mut self, mode: Mode) -> Self {
        self.hub.server.mode = mode;
        self
    }

    /// Sets how long to wait before the server is started again: the first time, doubled each time, and at most.
    #[must_use]
    pub const fn backoff(mut self, base: Duration, cap: Duration) -> Self {
        self.hub.backoff.base = base;
        self.hub.backoff.cap = cap;
        self
    }

    /// Sets how long the server has to be in order before what went wrong earlier is forgotten.
    #[must_use]
    pub const fn reset_after(mut self, health: Duration) -> Self {
        self.hub.backoff.reset_after = health;
        self
    }

    /// Sets how long a request may stay unanswered, unless it reports progress; `None` is for ever.
    #[must_use]
    pub const fn request_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.hub.mux.request_timeout = timeout;
        self
    }

    /// Sets how long the server may leave our handshake unanswered; `None` is for ever.
    #[must_use]
    pub const fn start_timeout(mut self, timeout: Option<Duration>) -> Self {
        self.hub.mux.start_timeout = timeout;
        self
    }

    /// Sets how many clients may be connected at a time.
    #[must_use]
    pub const fn max_clients(mut self, clients: usize) -> Self {
        self.hub.max_clients = clients;
        self
    }

    /// Ends by itself when no client has been there for so long; `None` is never.
    #[must_use]
    pub const fn idle_exit(mut self, patience: Option<Duration>) -> Self {
        self.hub.idle_exit = patience;
        self
    }

    /// Sets whether there is one server only, for the era of whoever comes first.
    #[must_use]
    pub const fn one_child(mut self, is_one: bool) -> Self {
        self.hub.mux.one_child = is_one;
        self
    }

    /// Sets whether each client has a server to itself, which is told what the client says of itself, and ends when the
    /// client goes.
    #[must_use]
    pub const fn child_per_session(mut self, is_private: bool) -> Self {
        self.hub.mux.private = is_private;
        self
    }

    /// Sets all of that at once, and what else there is.
    #[must_use]
    pub const fn hub(mut self, config: HubConfig) -> Self {
        self.hub = config;
        self
    }

    /// Lets in the clients of another user too, by number. The socket can then be reached by everybody, and whoever is
    /// not let in is turned away.
    #[must_use]
    pub fn allow_uid(mut self, uid: u32) -> Self {
        self.others.insert(uid);
        self
    }

    /// Tells those who ask how things stand that this file says what happened. Writing it is the caller's matter.
    #[must_use]
    pub fn log(mut self, path: impl Into<PathBuf>) -> Self {
        self.log = Some(path.into());
        self
    }

    /// Makes the socket, and gives back what goes on from there.
    ///
    /// # Errors
    /// As [`Listener::bind`].
    pub fn listen(self) -> Result<Listening, ListenError> {
        let Self { socket, command, mut hub, others, log } = self;
        if hub.mux.life == 0 {
            // Whoever serves the socket after us is another process.
            hub.mux.life = std::process::id();
        }
        let allowed: BTreeSet<u32> = others.into_iter().chain([own_uid(), 0]).collect();
        // Root can go anywhere.
        let is_for_others = allowed.iter().any(|uid| ![own_uid(), 0].contains(uid));
        let listener = if is_for_others { Listener::bind_for_all(&socket) } else { Listener::bind(&socket) }?;
        let words = command.arguments().iter().cloned();
        let words = [command.program().to_owned()].into_iter().chain(words).collect();
        let desk = Desk::new(Door::new(allowed), About { log, command: words });
        Ok(Listening { listener, command, hub, desk })
    }
}

/// What a [`MuxSpec`] leads to.
#[derive(Debug)]
pub struct Listening {
    /// The socket that clients connect to.
    pub listener: Listener,
    /// What starts the server.
    pub command: CommandSpec,
    /// How it is shared.
    pub hub: HubConfig,
    /// What lets clients in.
    pub desk: Desk,
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn only_with_other_users_can_others_reach_the_socket() {
        let directory = std::env::temp_dir().join(format!("lumen-mux-spec-{}", std::process::id()));
        for (others, mode) in [(vec![0, own_uid()], 0o600), (vec![4711], 0o666)] {
            let spec = MuxSpec::new(directory.join("s"), CommandSpec::new("x"));
            let listening = others.into_iter().fold(spec, MuxSpec::allow_uid).listen().unwrap();
            let found = std::fs::metadata(listening.listener.path()).unwrap().permissions().mode();
            assert_eq!(found & 0o777, mode);
        }
        std::fs::remove_dir_all(directory).unwrap();
    }
}
