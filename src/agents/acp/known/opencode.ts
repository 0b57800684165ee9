import { join } from 'node:path';
import type { Quirks } from './description.ts';
import { homeOf, nodeIn, outputOf } from './surroundings.ts';

/*
 * opencode (1.18) does not report when it asks its model again: the second answer continues under the id of the first one. Its database
 * has the final answer.
 */

/**
 * Prints the texts of messages. Texts that the model did not finish are empty. It runs in the sandbox, because only SQLite can read the
 * database together with its write-ahead log.
 */
const READ_TEXTS = `
const { DatabaseSync } = require('node:sqlite');
const [file, ...ids] = process.argv.slice(1);
const db = new DatabaseSync(file, { readOnly: true, timeout: 1000 });
const texts = db.prepare("SELECT data FROM part WHERE message_id = ? AND data ->> '$.type' = 'text' ORDER BY id");
const textOf = (id) => texts.all(id).map((row) => JSON.parse(row.data).text).join('');
process.stdout.write(JSON.stringify(ids.map((id) => [id, textOf(id)])));`;

export const OPENCODE_QUIRKS: Quirks = {
  opensForAnybody: true,
  async recordedTexts(messageIds, surroundings) {
    const { sandbox, env } = surroundings;
    const data = env.XDG_DATA_HOME || join(homeOf(surroundings), '.local', 'share');
    const node = await nodeIn(sandbox);
    const file = join(data, 'opencode', 'opencode.db');
    const printed = node && (await outputOf(surroundings, [node, '-e', READ_TEXTS, '--', file, ...messageIds]));
    // Without an answer, another version keeps its sessions elsewhere or in another form. Then what was streamed counts.
    return new Map<string, string>(printed === null ? [] : JSON.parse(printed));
  },
};
