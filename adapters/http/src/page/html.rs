//! HTML that cannot be broken out of.

/// A document under construction. What the program says is markup; what others say is text.
#[derive(Debug, Default)]
pub(super) struct Html(String);

impl Html {
    /// Adds markup: only what stands in the source of this program.
    pub(super) fn markup(&mut self, markup: &'static str) -> &mut Self {
        self.0.push_str(markup);
        self
    }

    /// Adds text from anywhere, in a place for text or in a quoted attribute (C33).
    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        for character in text.chars() {
            match character {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                other => self.0.push(other),
            }
        }
        self
    }

    /// Adds a cell of a table. Its text is set apart, so that letters which turn the direction of
    /// writing turn no other cell's.
    pub(super) fn cell(&mut self, text: &str) -> &mut Self {
        self.markup("<td><bdi>").text(text).markup("</bdi></td>")
    }

    /// The document.
    pub(super) fn finish(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn c33_text_stays_text() {
        let mut html = Html::default();
        html.markup("<p>").text("<script>alert(\"x\" & 'y')</script>\u{e9}").markup("</p>");
        assert_eq!(
            html.finish(),
            "<p>&lt;script&gt;alert(&quot;x&quot; &amp; &#39;y&#39;)&lt;/script&gt;\u{e9}</p>"
        );
    }
}
