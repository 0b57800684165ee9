import { homedir } from 'node:os';
import { join } from 'node:path';
import { DatabaseSync } from 'node:sqlite';
import { asObject } from '../connection/capabilities.ts';
import type { Quirks } from './description.ts';

/*
 * opencode (1.18) does not say when it asks its model again: the second answer goes on under the id of the first one. Its database
 * has what the model finally said.
 */

/** The texts of one message. Those that the model did not finish are empty. */
const TEXTS = `SELECT data FROM part WHERE message_id = ? AND data ->> '$.type' = 'text' ORDER BY id`;

export const OPENCODE_QUIRKS: Quirks = {
  opensForAnybody: true,
  async recordedTexts(messageIds, { env }) {
    const data = env.XDG_DATA_HOME || join(env.HOME ?? homedir(), '.local', 'share');
    try {
      using db = new DatabaseSync(join(data, 'opencode', 'opencode.db'), { readOnly: true, timeout: 1_000 });
      const texts = db.prepare(TEXTS);
      const textOf = (id: string) => texts.all(id).map((row) => asObject(JSON.parse(String(row.data))).text);
      return new Map(messageIds.map((id) => [id, textOf(id).join('')]));
    } catch {
      // Another version keeps its sessions elsewhere, or in another form: what was streamed counts as it is.
      return new Map();
    }
  },
};
