-- Answers from before: an answered question does not say why it had waited.
update millrace.ai_question q set reason = null, sentence = null where q.status = 'answered' and (q.reason is not null or q.sentence is not null);
