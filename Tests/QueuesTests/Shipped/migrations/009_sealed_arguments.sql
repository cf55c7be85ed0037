-- Which jobs need which key: for the doctor, and for sealing them anew under another. It holds a row for each encrypted job only.

create index job_sealed on millrace.job ((left(args ->> 'key', 32)), id) where args ->> '$millrace' = 'sealed';
