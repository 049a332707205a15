// SPDX-License-Identifier: Apache-2.0
//! The built page, as `web/` makes it; embedded by build.rs.

pub const INDEX: &str = include_str!(concat!(env!("PENSTOCK_PAGE"), "/index.html"));
pub const SCRIPT: &str = include_str!(concat!(env!("PENSTOCK_PAGE"), "/app.js"));
pub const STYLE: &str = include_str!(concat!(env!("PENSTOCK_PAGE"), "/app.css"));

/// The elements of `INDEX` that load the other two; `report.html` has their text in their place.
pub const SCRIPT_TAG: &str = r#"<script type="module" src="./app.js"></script>"#;
pub const STYLE_TAG: &str = r#"<link rel="stylesheet" href="./app.css">"#;

/// Nothing but the page's own files, and no page around it.
pub const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; \
                          base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_loads_its_script_and_its_style_as_the_report_expects() {
        for tag in [SCRIPT_TAG, STYLE_TAG] {
            assert_eq!(INDEX.matches(tag).count(), 1, "{tag} in {INDEX}");
        }
    }
}
