//! A certificate for a server of one address, signed by an authority of its own.
//!
//! Made by the `openssl` program when it is asked for: what is kept in a repository expires.

use std::{
    fs, io,
    net::Ipv4Addr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// What a server is started with.
#[derive(Clone, Debug)]
pub(crate) struct Certificate {
    /// The authority's certificate, for those who connect.
    pub(crate) authority: PathBuf,
    /// The server's certificate, as text.
    pub(crate) certificate: String,
    /// The server's key, as text.
    pub(crate) key: String,
}

/// Makes one that is good for an address and for the name `localhost`, in this folder.
///
/// # Errors
/// If there is no `openssl`, or it does not do it.
pub(crate) fn certify(folder: &Path, address: Ipv4Addr) -> io::Result<Certificate> {
    let at = |name: &str| folder.join(name).display().to_string();
    let (authority, authority_key) = (at("authority.pem"), at("authority.key"));
    let (certificate, key) = (at("server.pem"), at("server.key"));
    let kind =
        ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30"];
    let signed = |subject: &str, extensions: &[String], rest: &[&str]| {
        let mut openssl = Command::new("openssl");
        openssl.args(["req", "-x509", "-subj", subject]).args(kind).args(rest);
        openssl.args(extensions.iter().flat_map(|extension| ["-addext", extension]));
        let done = openssl.stdin(Stdio::null()).output()?;
        if done.status.success() {
            return Ok(());
        }
        Err(io::Error::other(String::from_utf8_lossy(&done.stderr).into_owned()))
    };
    signed("/CN=dlock test authority", &[], &["-out", &authority, "-keyout", &authority_key])?;
    signed(
        "/CN=localhost",
        &[
            format!("subjectAltName=IP:{address},DNS:localhost"),
            "basicConstraints=critical,CA:FALSE".to_owned(),
        ],
        &["-CA", &authority, "-CAkey", &authority_key, "-out", &certificate, "-keyout", &key],
    )?;
    let (certificate, key) = (fs::read_to_string(certificate)?, fs::read_to_string(key)?);
    Ok(Certificate { authority: authority.into(), certificate, key })
}
