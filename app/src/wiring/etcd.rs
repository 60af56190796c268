//! The etcd store, as configured.

use std::{path::Path, sync::Arc};

use dlock_etcd::{EtcdConfig, EtcdStore, Tls, User};
use dlock_ports::{Backend, Clock, Entropy};

use crate::config::etcd::EtcdPlace;

/// Connects to the cluster; whether it is there shows with the first call.
///
/// # Errors
/// A file that cannot be read, an address that is none, a user who is not let in; each in words.
pub(crate) async fn connect(
    place: &EtcdPlace,
    clock: Arc<dyn Clock>,
    entropy: Arc<dyn Entropy>,
) -> Result<Backend, String> {
    let mut config = EtcdConfig::at(place.endpoints.clone());
    config.prefix.clone_from(&place.prefix);
    config.state_file.clone_from(&place.state_file);
    config.user = match (&place.username, &place.password_file) {
        (Some(name), Some(file)) => {
            let password = text(file, "etcd.password_file")?;
            let password = password.strip_suffix('\n').unwrap_or(&password);
            let password = password.strip_suffix('\r').unwrap_or(password).to_owned();
            Some(User { name: name.clone(), password })
        }
        (None, None) => None,
        (Some(_), None) => return Err(together("etcd.password_file", "etcd.username")),
        (None, Some(_)) => return Err(together("etcd.username", "etcd.password_file")),
    };
    let identity = match (&place.cert_file, &place.key_file) {
        (Some(certificate), Some(key)) => {
            Some((bytes(certificate, "etcd.tls.cert_file")?, bytes(key, "etcd.tls.key_file")?))
        }
        (None, None) => None,
        (Some(_), None) => return Err(together("etcd.tls.key_file", "etcd.tls.cert_file")),
        (None, Some(_)) => return Err(together("etcd.tls.cert_file", "etcd.tls.key_file")),
    };
    let authority =
        place.ca_file.as_deref().map(|file| bytes(file, "etcd.tls.ca_file")).transpose()?;
    let secure = place.endpoints.iter().find(|endpoint| endpoint.starts_with("https://"));
    if let (Some(endpoint), None) = (secure, &authority) {
        return Err(format!(
            "etcd.tls.ca_file: must be set for {endpoint}: nobody is trusted else"
        ));
    }
    let server_name = place.server_name.clone();
    if authority.is_some() || identity.is_some() || server_name.is_some() {
        config.tls = Some(Tls { authority, identity, server_name });
    }
    let store = EtcdStore::connect(config, clock, entropy).await;
    Ok(store.map_err(|error| error.to_string())?.backend())
}

fn bytes(file: &Path, key: &str) -> Result<Vec<u8>, String> {
    std::fs::read(file).map_err(|error| format!("{key}: {}: {error}", file.display()))
}

fn text(file: &Path, key: &str) -> Result<String, String> {
    std::fs::read_to_string(file).map_err(|error| format!("{key}: {}: {error}", file.display()))
}

fn together(missing: &str, given: &str) -> String {
    format!("{missing}: must be set where {given} is")
}
