//! What the sessions of every binding tell of themselves, however they wait.

/// Of a client, and of its server.
macro_rules! of_client {
    ($client:ident<$driver:ident>) => {
        impl<D: $driver> $client<D> {
            /// Returns the end of what the server wrote to its standard error; nothing of it if that is inherited.
            /// Complete once [`recv`](Self::recv) has told that the session is over.
            pub fn stderr_tail(&self) -> Option<&StderrTail> {
                self.io.stderr_tail(self.io.machine().port())
            }

            /// Returns why the server could not be started or connected to, in words.
            pub fn open_error(&self) -> Option<&str> {
                self.io.open_error()
            }
        }
    };
}

/// Of either end.
macro_rules! of_end {
    ($end:ident<$driver:ident>) => {
        impl<D: $driver> $end<D> {
            /// Sets who is told of every event that is no message. They are dropped otherwise.
            pub fn on_notice(&mut self, notice: impl FnMut(Event) + Send + 'static) {
                self.session.on_notice(notice);
            }

            /// Returns whether messages leave as LUMEN frames.
            pub fn is_lumen(&self) -> bool {
                self.io.machine().is_lumen()
            }

            /// Returns how the session ended, once it has.
            pub fn outcome(&self) -> Option<Outcome> {
                self.io.machine().outcome()
            }

            /// Returns the bytes that went both ways.
            pub fn counters(&self) -> Counters {
                self.io.counters(self.io.machine().port())
            }
        }
    };
}

pub(crate) use {of_client, of_end};
