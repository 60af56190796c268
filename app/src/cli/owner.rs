//! Who we say we are when nobody says.

use dlock_domain::{LockError, OwnerId};
use rustix::process::{getpid, getuid};
use rustix::system::uname;

/// `user@host:pid`, with whatever could not be shown replaced.
pub(crate) fn default() -> Result<OwnerId, LockError> {
    let named = ["USER", "LOGNAME"].into_iter().find_map(|name| std::env::var(name).ok());
    let user = named
        .filter(|name| !name.is_empty())
        .unwrap_or_else(|| format!("uid{}", getuid().as_raw()));
    let host = uname().nodename().to_string_lossy().into_owned();
    build(&user, &host, getpid().as_raw_nonzero().get())
}

fn build(user: &str, host: &str, pid: i32) -> Result<OwnerId, LockError> {
    let shown = |text: &str| -> String {
        let ascii = |c: char| if c.is_ascii_graphic() { c } else { '?' };
        text.chars().map(ascii).take(100).collect()
    };
    OwnerId::new(&format!("{}@{}:{pid}", shown(user), shown(host)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_printable_whatever_the_environment_says() {
        assert_eq!(build("me", "host", 7).unwrap().as_str(), "me@host:7");
        let odd = build("a\nb\u{1b}", &"h".repeat(300), i32::MAX).unwrap();
        assert!(odd.as_str().starts_with("a?b?@hhh"));
        assert!(default().is_ok());
    }
}
