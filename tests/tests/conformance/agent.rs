//! What a client of a mux says and hears, as text.

use std::path::Path;

use lumen_tests::mux::{Client, INITIALIZED, initialize};

/// Connects and shakes hands; returns the answer too.
pub fn greeted(path: &Path) -> (Client, String) {
    let mut client = Client::connect(path).unwrap();
    client.say(&initialize("0", "{}", "2025-06-18"));
    let answer = heard(&mut client).expect("an answer");
    client.say(INITIALIZED);
    (client, answer)
}

/// The next line without its end; `None` at the end of the stream.
pub fn heard(client: &mut Client) -> Option<String> {
    client.try_hear().unwrap().map(|line| String::from_utf8(line).unwrap())
}

/// Waits until all that was said before is dealt with: a ping is answered, and nothing else.
pub fn settle(client: &mut Client) {
    client.say(r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#);
    assert!(heard(client).expect("an answer").contains(r#""id":"p""#));
}
