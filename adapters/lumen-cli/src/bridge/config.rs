//! From the command line and the environment to a client. Nothing here quotes what may be a secret.

use std::ffi::OsString;

use lumen_http::{Client, Config, Proxy, Roots, ServerUrl};

use crate::args::Bridge;
use crate::report::say;

/// Variables that hold the key, the first that is set and not empty counts.
const KEYS: [&str; 2] = ["LUMEN_API_KEY", "LEUMAS_API_KEY"];

type Env<'a> = &'a dyn Fn(&str) -> Option<OsString>;

/// Makes the client, or says in words what is wrong with the command line or the environment.
pub(crate) fn client(args: Bridge, env: Env<'_>) -> Result<Client, String> {
    let connect_timeout = args.connect_timeout();
    let url = ServerUrl::parse(&args.url, args.site.as_deref()).map_err(|error| error.to_string())?;
    let (origin, is_in_the_clear) = (url.origin(), url.is_in_the_clear());
    let mut roots = Roots::default();
    if let Some(file) = &args.ca {
        roots = roots.with_file(file).map_err(|error| error.to_string())?;
    }
    let mut config = Config::new(url).with_roots(roots).with_connect_timeout(connect_timeout);
    if let Some(proxy) = &args.proxy {
        config = config.with_proxy(Proxy::parse(proxy).map_err(|error| error.to_string())?);
    }
    for header in &args.headers {
        let (name, value) = split(header, env)?;
        config = config.with_header(name, &value).map_err(|error| error.to_string())?;
    }
    match key(args.key, env)? {
        // Who writes the header himself means it.
        Some(Key { is_given: true, .. }) if config.is_authorized() => {
            return Err(
                "--key and --header 'Authorization: ..' say the same thing twice; give one".to_owned()
            );
        }
        Some(key) if !config.is_authorized() => {
            config = config.with_key(&key.text).map_err(|_| {
                "the key cannot be sent: it holds a control character; is all of it the key?".to_owned()
            })?;
        }
        _ => {}
    }
    if !config.is_authorized() {
        say(&format!(
            "no key: --key, LUMEN_API_KEY and LEUMAS_API_KEY are empty; if the server wants one, {origin}/connect is \
             the usual place to make it"
        ));
    } else if is_in_the_clear {
        say(&format!("{origin} is not https: whoever is on the way can read the key"));
    }
    Client::new(config).map_err(|error| error.to_string())
}

struct Key {
    text: String,
    /// On the command line.
    is_given: bool,
}

fn key(given: Option<String>, env: Env<'_>) -> Result<Option<Key>, String> {
    if let Some(text) = given {
        return match text.trim() {
            "" => Err("--key is empty".to_owned()),
            text => Ok(Some(Key { text: text.to_owned(), is_given: true })),
        };
    }
    for name in KEYS {
        let Some(text) = env(name) else { continue };
        let text = text.into_string().map_err(|_| format!("the variable {name} is no text"))?;
        if !text.trim().is_empty() {
            return Ok(Some(Key { text: text.trim().to_owned(), is_given: false }));
        }
    }
    Ok(None)
}

/// Splits `K: V` and puts the variables in.
fn split<'a>(header: &'a str, env: Env<'_>) -> Result<(&'a str, String), String> {
    let Some((name, value)) = header.split_once(':') else {
        return Err("--header takes 'NAME: VALUE'; one of them has no colon".to_owned());
    };
    let name = name.trim();
    let mut rest = value.trim();
    let mut expanded = String::new();
    while let Some((before, after)) = rest.split_once("${") {
        let Some((variable, after)) = after.split_once('}') else {
            return Err(format!("the value of the header {name:?} has a ${{ without its }}"));
        };
        let Some(value) = env(variable) else {
            return Err(format!("the header {name:?} needs the variable {variable}, which is not set"));
        };
        let value = value.into_string().map_err(|_| format!("the variable {variable} is no text"))?;
        expanded.push_str(before);
        expanded.push_str(&value);
        rest = after;
    }
    expanded.push_str(rest);
    Ok((name, expanded))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(name: &str) -> Option<OsString> {
        match name {
            "SET" => Some("a ${X}".into()),
            "EMPTY" => Some("".into()),
            "LUMEN_API_KEY" => Some(" ".into()),
            "LEUMAS_API_KEY" => Some("from the second\n".into()),
            _ => None,
        }
    }

    #[test]
    fn variables_are_put_in_once_and_must_be_set() {
        for (header, name, value) in [
            ("X-A: ${SET}-${EMPTY}-$SET}", "X-A", "a ${X}--$SET}"),
            ("X-A:b:c ", "X-A", "b:c"),
            ("X-A:", "X-A", ""),
            ("X-A: $100", "X-A", "$100"),
        ] {
            assert_eq!(split(header, &env).unwrap(), (name, value.to_owned()), "{header}");
        }
        for (header, what) in [("X-A", "colon"), ("X-A: ${UNSET}", "UNSET"), ("X-A: ${SET", "without")] {
            let error = split(header, &env).unwrap_err();
            assert!(error.contains(what), "{error}");
        }
    }

    #[test]
    fn the_flag_counts_before_the_variables_and_an_empty_one_is_none() {
        assert_eq!(key(Some(" k ".to_owned()), &env).unwrap().unwrap().text, "k");
        assert_eq!(key(None, &env).unwrap().unwrap().text, "from the second");
        assert!(key(None, &|_| None).unwrap().is_none());
        assert!(key(Some(String::new()), &env).is_err());
    }
}
