/**
 * The words of titles, so that a conversation is found by its name. The index keeps no text of its own, and reaches an owner only through the
 * conversation. Triggers keep it: a title is written in several places. Words of a title that is replaced or erased are deleted from the file
 * at once ('secure-delete').
 */
export const sql = `
CREATE VIRTUAL TABLE titles USING fts5 (title, content = 'conversations', content_rowid = 'no', tokenize = 'unicode61');
INSERT INTO titles (titles, rank) VALUES ('secure-delete', 1);
INSERT INTO titles (rowid, title) SELECT no, title FROM conversations WHERE title <> '';

CREATE TRIGGER titles_added AFTER INSERT ON conversations WHEN new.title <> '' BEGIN
  INSERT INTO titles (rowid, title) VALUES (new.no, new.title);
END;
CREATE TRIGGER titles_changed AFTER UPDATE OF title ON conversations WHEN new.title <> old.title BEGIN
  INSERT INTO titles (titles, rowid, title) SELECT 'delete', old.no, old.title WHERE old.title <> '';
  INSERT INTO titles (rowid, title) SELECT new.no, new.title WHERE new.title <> '';
END;
CREATE TRIGGER titles_removed AFTER DELETE ON conversations WHEN old.title <> '' BEGIN
  INSERT INTO titles (titles, rowid, title) VALUES ('delete', old.no, old.title);
END;
`;
