-- points_award knows who calls since it is a back end's too; both forms together could not be told apart. On a new database there is only the new one.
drop function if exists millrace.points_award(text, int, text, text);
