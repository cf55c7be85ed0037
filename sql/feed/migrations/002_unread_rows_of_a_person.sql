-- What has no number yet is found by the person or the thread, so that leaving and erasing do not walk over the rows of others.
create index feed_unread_of on millrace.feed (person) where seq is null and person is not null;
create index feed_unread_of_thread on millrace.feed (thread) where seq is null and thread is not null;
