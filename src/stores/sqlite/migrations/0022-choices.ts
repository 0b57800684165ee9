/** What a conversation has chosen for the prompts of its agent, as JSON: `agent`, `model`, `mode`, `config`. */
export const sql = `
ALTER TABLE conversations ADD COLUMN choices TEXT NOT NULL DEFAULT '{}';
`;
