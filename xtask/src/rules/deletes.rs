//! No adapter deletes without a predicate: a release that takes whatever is there takes the next
//! holder's grant.

use crate::finding::Finding;
use crate::grep;
use crate::house::{House, SourceFile};
use crate::lex;

/// The name findings carry.
pub const RULE: &str = "deletes";

/// Where stores are spoken to.
const ADAPTERS: &str = "adapters/";

/// Where a method that deletes is not a statement but a call to the cluster. Its tests may delete
/// behind everybody's back.
const ETCD: &str = "adapters/etcd/src/";

/// What narrows a diesel statement.
const PREDICATES: &[&str] = &[".filter(", ".find("];

/// What sends a diesel statement: a predicate after it narrows nothing.
const SENDS: &[&str] = &[".execute(", ".get_result", ".load(", ".load::"];

/// Finds deletes without a predicate in diesel statements, in SQL inside string literals and in
/// `.sql` files, and in calls to etcd that no transaction guards.
#[must_use]
pub fn check(house: &House) -> Vec<Finding> {
    let mut findings = Vec::new();
    for file in house.files.iter().filter(|file| file.path.starts_with(ADAPTERS)) {
        let mut found = Vec::new();
        if file.path.ends_with(".sql") {
            found = in_sql(&file.text);
        } else if file.path.ends_with(".rs") {
            let views = lex::views(&file.text);
            found.extend(in_diesel(&views.code));
            for (start, text) in &views.strings {
                found.extend(in_sql(text).into_iter().map(|at| start + at));
            }
            if file.path.starts_with(ETCD) {
                found.extend(in_etcd(&views.code));
            }
        }
        findings.extend(found.into_iter().map(|at| finding(file, at)));
    }
    findings
}

fn finding(file: &SourceFile, at: usize) -> Finding {
    let what = "a delete without a predicate";
    file.finding(RULE, at, what, "narrow it to the key and the token in the same statement")
}

/// Calls of diesel's `delete`, by whatever path, whose statement is not narrowed.
fn in_diesel(code: &str) -> Vec<usize> {
    let is_diesels = |at: &usize| {
        let path_start = code[..*at]
            .rfind(|sign: char| !sign.is_alphanumeric() && sign != '_' && sign != ':')
            .map_or(0, |before| before + 1);
        code[path_start..*at].starts_with("diesel::")
    };
    let narrowed = |at: &usize| {
        let statement = statement(&code[*at..]);
        PREDICATES.iter().any(|predicate| statement.contains(predicate))
    };
    let calls = grep::find_all(code, "delete(").into_iter();
    calls.filter(|at| is_diesels(at) && !narrowed(at)).collect()
}

/// The statement that starts here, without blanks: up to its `;`, to the end of what it stands in,
/// or to where it is sent. What stands inside brackets ends nothing.
fn statement(code: &str) -> String {
    let mut depth = 0_usize;
    let mut statement = String::new();
    for sign in code.chars().filter(|sign| !sign.is_whitespace()) {
        match sign {
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' if depth == 0 => break,
            ')' | ']' | '}' => depth -= 1,
            ';' | ',' if depth == 0 => break,
            _ => {}
        }
        statement.push(sign);
        let outside = depth <= usize::from(sign == '(');
        if outside && SENDS.iter().any(|send| statement.ends_with(send)) {
            break;
        }
    }
    statement
}

/// Deletes in SQL text that end without `WHERE`: at a `;`, or with the text.
fn in_sql(text: &str) -> Vec<usize> {
    // Every blank, escaped or not, becomes blanks of the same length, so that offsets stay.
    let flat =
        ["\\n", "\\t"].iter().fold(without_comments(text), |sql, blank| sql.replace(blank, "  "));
    let flat = flat.replace(['\\', '\n', '\t', '\r'], " ").to_ascii_uppercase();
    let narrowed = |at: &usize| {
        let statement = flat[*at..].split(';').next().unwrap_or_default();
        !grep::find_words(statement, "WHERE").is_empty()
    };
    let deletes = grep::find_words(&flat, "DELETE").into_iter();
    let from = |at: &usize| {
        let rest = flat[at + "DELETE".len()..].trim_start();
        rest.strip_prefix("FROM").is_some_and(|rest| rest.is_empty() || rest.starts_with(' '))
    };
    deletes.filter(|at| from(at) && !narrowed(at)).collect()
}

/// SQL with `--` comments blanked, so that no commented-out `WHERE` narrows anything.
fn without_comments(text: &str) -> String {
    let mut sql = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (code, comment) = line.split_at(line.find("--").unwrap_or(line.len()));
        sql.push_str(code);
        sql.extend(comment.bytes().map(|byte| if byte == b'\n' { '\n' } else { ' ' }));
    }
    sql
}

/// Calls that delete at once: inside a transaction it is the operation that is made, not the call.
fn in_etcd(code: &str) -> Vec<usize> {
    let in_txn = |at: &usize| {
        let start = code[..*at].rfind('\n').map_or(0, |newline| newline + 1);
        let line = code[start..].lines().next().unwrap_or_default();
        line.contains("Txn")
    };
    grep::find_all(code, ".delete(").into_iter().filter(|at| !in_txn(at)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{house, places};

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(&house(&[(path, text)])).iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn a_diesel_delete_without_a_predicate_is_found() {
        for source in [
            "diesel::delete(grants::table).execute(conn)?;\n",
            "diesel::delete(\n    grants::table,\n)\n.execute(conn)?;\nrows.iter().filter(f);\n",
            "diesel::delete(t)\n    // .filter(key.eq(k))\n    .execute(conn)?;\n",
            "diesel::delete(t).execute(conn).map(|n| rows.iter().filter(f).count());\n",
            "diesel::dsl::delete(t).execute(conn)?;\n",
            "diesel::delete(t) }\nfn g() { x.filter(y);\n",
        ] {
            assert_eq!(lines("adapters/embedded/src/store.rs", source), [1], "{source}");
        }
    }

    #[test]
    fn a_diesel_delete_with_a_predicate_passes() {
        for source in [
            "diesel::delete(t.filter(key.eq(k))).execute(conn)?;\n",
            "diesel::delete(t)\n    .filter(key.eq(k))\n    .filter(token.eq(n))\n    .execute(c)?;\n",
            "diesel::delete(t.find(k)).execute(conn)?;\n",
            "diesel::delete(t).returning(key).filter(key.eq(k)).get_result(conn)?;\n",
            "self.delete(key)?; fn delete(k: K) {}\n",
        ] {
            assert_eq!(lines("adapters/embedded/src/store.rs", source), [0; 0], "{source}");
        }
    }

    #[test]
    fn sql_in_a_string_needs_its_where_in_that_statement() {
        let path = "adapters/postgres/src/sql.rs";
        for source in [
            "sql_query(\"DELETE FROM grants\")",
            "sql_query(\"delete  from grants; select 1 where true\")",
            "sql_query(r#\"DELETE FROM grants\"#) // WHERE\n",
            "sql_query(\"DELETE FROM grants\n-- WHERE key = $1\n\")",
            "sql_query(\"DELETE \\\n    FROM grants\")",
        ] {
            assert_eq!(lines(path, source), [1], "{source}");
        }
        let later = "const A: &str = \"\n    WITH x AS (SELECT 1)\n    DELETE FROM grants\";\n";
        assert_eq!(lines(path, later), [3]);
        for source in [
            "sql_query(\"DELETE FROM grants WHERE key = $1\")",
            "sql_query(\"DELETE FROM grants\\\n    where key = $1\")",
            "sql_query(\"DELETE FROM grants\\nWHERE key = $1\")",
            "sql_query(\"-- DELETE FROM grants\n SELECT 1\")",
            "sql_query(\"SELECT 1 FROM deleted\") // DELETE FROM grants\n",
        ] {
            assert_eq!(lines(path, source), [0; 0], "{source}");
        }
    }

    #[test]
    fn sql_files_are_read_statement_by_statement() {
        let path = "adapters/embedded/migrations/1/up.sql";
        assert_eq!(lines(path, "CREATE TABLE a (b);\nDELETE FROM a\n  -- WHERE b = 1\n;\n"), [2]);
        assert_eq!(lines(path, "-- DELETE FROM a;\nDELETE\nFROM a\nWHERE b = 1;\n"), [0; 0]);
    }

    #[test]
    fn an_etcd_delete_outside_a_transaction_is_found() {
        let source = "client\n    .delete(key, None)\n    .await?;\nTxnOp::delete(key, None);\n";
        let house = house(&[("adapters/etcd/src/store.rs", source)]);
        assert_eq!(places(&check(&house)), ["adapters/etcd/src/store.rs:2"]);
        assert_eq!(lines("adapters/http/src/client.rs", source), [0; 0]);
    }
}
