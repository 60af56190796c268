//! Certificates for a server of one address and for its clients, signed by an authority of their own.
//!
//! Made by the `openssl` program when it is asked for: what is kept in a repository expires.

use std::{
    io,
    net::Ipv4Addr,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// What a server is started with, and what those who connect check it by.
#[derive(Clone, Debug)]
pub(crate) struct Certificate {
    /// The authority's certificate.
    pub(crate) authority: PathBuf,
    /// The server's own.
    pub(crate) server: Identity,
}

/// What a client, or a server, shows to be known: files.
#[derive(Clone, Debug)]
pub struct Identity {
    /// Its certificate.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
}

/// Makes one that is good for an address and for the name `localhost`, in this folder.
///
/// # Errors
/// If there is no `openssl`, or it does not do it.
pub(crate) fn certify(folder: &Path, address: Ipv4Addr) -> io::Result<Certificate> {
    let (authority, key) = authority(folder);
    let out = [&authority, &key].map(|file| file.display().to_string());
    make("/CN=dlock test authority", &[], &["-out", &out[0], "-keyout", &out[1]])?;
    let names = format!("subjectAltName=IP:{address},DNS:localhost");
    let server = sign(folder, "server", "/CN=localhost", &[names])?;
    Ok(Certificate { authority, server })
}

/// Makes one by which a client is this user. A server that is told of the authority knows it.
///
/// # Errors
/// As [`certify`], whose folder it is.
pub(crate) fn identify(folder: &Path, user: &str) -> io::Result<Identity> {
    sign(folder, &format!("client-{user}"), &format!("/CN={user}"), &[])
}

/// The authority's certificate and key.
fn authority(folder: &Path) -> (PathBuf, PathBuf) {
    (folder.join("authority.pem"), folder.join("authority.key"))
}

/// A certificate that the authority signed, in files of this name.
fn sign(folder: &Path, name: &str, subject: &str, more: &[String]) -> io::Result<Identity> {
    let (authority, authority_key) = authority(folder);
    let certificate = folder.join(format!("{name}.pem"));
    let key = folder.join(format!("{name}.key"));
    let files = [&authority, &authority_key, &certificate, &key];
    let [authority, authority_key, out, key_out] = files.map(|file| file.display().to_string());
    let extensions = [more, &["basicConstraints=critical,CA:FALSE".to_owned()]].concat();
    make(
        subject,
        &extensions,
        &["-CA", &authority, "-CAkey", &authority_key, "-out", &out, "-keyout", &key_out],
    )?;
    Ok(Identity { certificate, key })
}

fn make(subject: &str, extensions: &[String], rest: &[&str]) -> io::Result<()> {
    let kind =
        ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "30"];
    let mut openssl = Command::new("openssl");
    openssl.args(["req", "-x509", "-subj", subject]).args(kind).args(rest);
    openssl.args(extensions.iter().flat_map(|extension| ["-addext", extension]));
    let done = openssl.stdin(Stdio::null()).output()?;
    if done.status.success() {
        return Ok(());
    }
    Err(io::Error::other(String::from_utf8_lossy(&done.stderr).into_owned()))
}
