//! Where a server's program comes from, and what says so.

use std::path::PathBuf;

/// Where it comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    /// A program of this machine, or a folder of programs.
    Binary(PathBuf),
    /// An image with the server in it.
    Image { name: String, tag: String },
}

/// What a variable begins with that names an image.
const IMAGE: &str = "image:";

impl Source {
    /// What a variable says: a path, or `image:NAME:TAG`.
    ///
    /// # Errors
    /// What is wrong with it, in words.
    pub(crate) fn told(told: &str) -> Result<Self, String> {
        if is_image(told) { image(told) } else { Ok(Self::Binary(told.into())) }
    }
}

/// An image: the first variable's, else the second's if that names one; nothing where neither does.
pub(crate) fn image_told(
    env: &dyn Fn(&str) -> Option<String>,
    first: &str,
    second: &str,
) -> Option<Result<Source, String>> {
    let told = env(first).or_else(|| env(second).filter(|told| is_image(told)));
    told.map(|told| image(&told))
}

fn is_image(told: &str) -> bool {
    told.starts_with(IMAGE)
}

/// The image that a variable names.
fn image(told: &str) -> Result<Source, String> {
    let named = told.strip_prefix(IMAGE).unwrap_or(told).rsplit_once(':');
    let (name, tag) = named.ok_or_else(|| format!("`{told}` names no image as image:NAME:TAG"))?;
    Ok(Source::Image { name: name.to_owned(), tag: tag.to_owned() })
}
