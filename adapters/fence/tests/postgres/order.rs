//! One writer after the other.

use dlock_fence::{FencingToken, Resource};
use dlock_servers::PostgresVersion;

use crate::{
    on_both,
    support::{Place, assert_stale, token},
};

on_both! {
    inv05_first_second_equal_pass_and_lower_is_refused_with_both_tokens
    both_ends_of_what_is_a_token_pass
    resources_are_apart_byte_for_byte
    a_mark_goes_back_with_what_was_written
}

async fn inv05_first_second_equal_pass_and_lower_is_refused_with_both_tokens(
    version: PostgresVersion,
) {
    let place = Place::new(version).await;
    let mut writer = place.writer().await;
    for number in [3, 3, 7, 7] {
        writer.write(number).await.unwrap();
    }
    assert_stale(writer.write(3).await, 3, 7);
    assert_stale(writer.write(6).await, 6, 7);
    writer.write(7).await.unwrap();
    assert_eq!(writer.written().await, [3, 3, 7, 7, 7]);
    assert_eq!(writer.mark().await, 7, "what is refused changes nothing");
}

async fn both_ends_of_what_is_a_token_pass(version: PostgresVersion) {
    let place = Place::new(version).await;
    let mut writer = place.writer().await;
    writer.write(1).await.unwrap();
    writer.write(FencingToken::MAX).await.unwrap();
    assert_stale(
        writer.write(FencingToken::MAX - 1).await,
        FencingToken::MAX - 1,
        FencingToken::MAX,
    );
}

async fn resources_are_apart_byte_for_byte(version: PostgresVersion) {
    let place = Place::new(version).await;
    let mut writer = place.writer().await;
    let long = "é".repeat(256);
    let names = ["a", "A", "a/", "a ", "é", "e\u{301}", "%00", "a\nb", &long];
    writer.begin().await;
    for (number, name) in (1..).zip(names) {
        let resource = Resource::new(name).unwrap();
        // Lower than the one before it, had that been the same resource.
        place.fence.pass(&mut writer.connection, &resource, token(100 - number)).await.unwrap();
    }
    writer.commit().await;
    let marks = writer.number("SELECT count(*) AS number FROM dlock_fence").await;
    assert_eq!(usize::try_from(marks).unwrap(), names.len());
}

async fn a_mark_goes_back_with_what_was_written(version: PostgresVersion) {
    let place = Place::new(version).await;
    let mut writer = place.writer().await;
    writer.write(2).await.unwrap();
    writer.begin().await;
    writer.pass(9).await.unwrap();
    writer.roll_back().await;
    assert_eq!(writer.mark().await, 2);
    writer.write(3).await.unwrap();
    // A savepoint that is rolled back takes its mark along, too.
    writer.begin().await;
    writer.begin_at_savepoint().await;
    writer.pass(8).await.unwrap();
    writer.roll_back().await;
    writer.pass(4).await.unwrap();
    writer.commit().await;
    assert_eq!(writer.mark().await, 4);
}
