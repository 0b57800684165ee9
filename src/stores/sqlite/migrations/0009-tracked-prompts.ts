/** Prompts that a tracker gave at the end of a turn were kept in its record alone. They are the turn's own now. */
export const sql = `
UPDATE turns SET
  prompt = (SELECT json_extract(body, '$.prompt') FROM records WHERE turn = turns.no),
  prompt_refs = (SELECT body_refs FROM records WHERE turn = turns.no)
WHERE prompt = '[]'
  AND EXISTS (SELECT 1 FROM records WHERE turn = turns.no AND json_extract(body, '$.prompt') IS NOT NULL);
`;
