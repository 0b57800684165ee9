import { createHash } from 'node:crypto';
import { open, readFile, rm } from 'node:fs/promises';
import { dirname, resolve } from 'node:path';
import type { Command } from 'commander';
import { ThroughlineError } from '../../../../core/errors.ts';
import { seqOf } from '../../../../core/event.ts';
import { lostInWords } from '../../../../core/loss.ts';
import { shellWord } from '../../../../core/turn/quoted.ts';
import type { Engine } from '../../../../ports/engine.ts';
import { addHelp, type Cli } from '../../cli.ts';
import { turns } from '../../lines.ts';
import { asJson, cannotWrite } from '../conversations/export.ts';

export function define(command: Command, cli: Cli): void {
  command
    .argument('<key>', 'the conversation: its key or id')
    .argument('<file>', 'the file to write, readable by you alone; it must not exist')
    .action((key: string, file: string) => archive(key, resolve(file), cli));
  addHelp(command, {
    about:
      'Verifies the conversation, writes it to the file as "throughline export" does, reads the file again, and then erases the conversation. If anything ' +
      'was added to it meanwhile, or a turn is open, nothing is erased and there is no file. "throughline import FILE" brings it back under its key, with all its turns. ' +
      'It then has a new id, and the next turn restores the context in a new session. ' +
      'The file has every turn with its prompt, answer and tools. It does not have the events, receipts and questions, nor the sandbox, which stays where it is.',
    examples: [
      'throughline archive notes notes.json',
      'throughline archive notes archive/notes.json --server https://agents.example.org',
    ],
  });
}

async function archive(key: string, file: string, { output, withEngine }: Cli): Promise<void> {
  await withEngine(async (engine) => {
    const { id } = await engine.conversation(key);
    const head = await verified(engine, id);
    const { text, count } = await asJson(engine, id);
    const sha256 = await writeWhole(file, `${text}\n`);
    // Only what was verified is erased: had something been added since, the file might not have it.
    const { remains } = await engine.erase(id, { head }).catch(async (error: unknown) => {
      await removeIfKept(engine, id, file);
      throw error;
    });
    const result = { conversationId: id, key, file, turns: count, head, sha256, remains };
    output.result(result, `Archived ${key}: ${turns(count)} in ${file}. Its id was ${id}.`);
    output.note(`sha256 of the file: ${sha256}\n"throughline import ${shellWord(file)}" brings it back.`);
  });
}

/** The end of its chain. Throws when the chain is not intact. */
async function verified(engine: Engine, id: string): Promise<string> {
  const { broken, lost, head } = await engine.verify(id);
  if (broken !== null) {
    throw new ThroughlineError(
      'storage_damaged',
      `Event ${broken} was changed after it was written. Nothing was archived.`,
    );
  }
  if (lost !== undefined) throw new ThroughlineError('storage_lost', `${lostInWords(lost)} Nothing was archived.`);
  if (seqOf(head) === 0)
    throw new ThroughlineError('invalid', 'The conversation is empty, so there is nothing to archive.');
  return head;
}

/** Writes a new file, on disk when this resolves, and reads it again. Returns its SHA-256. */
async function writeWhole(file: string, text: string): Promise<string> {
  const sha256 = (bytes: string | Buffer) => createHash('sha256').update(bytes).digest('hex');
  const written = await open(file, 'wx', 0o600).catch((cause: unknown) => {
    throw cannotWrite(file, cause);
  });
  try {
    await written.writeFile(text);
    await written.sync();
    await written.close();
    const folder = await open(dirname(file), 'r');
    await folder.sync();
    await folder.close();
    if (sha256(await readFile(file)) !== sha256(text))
      throw Object.assign(new Error('the file differs from what was written'), { code: 'EIO' });
  } catch (cause) {
    await rm(file, { force: true });
    throw cannotWrite(file, cause);
  }
  return sha256(text);
}

/** Removes the file only if the conversation is certainly still stored: otherwise the file may be the last copy. */
async function removeIfKept(engine: Engine, id: string, file: string): Promise<void> {
  const isThere = await engine.conversation(id).then(
    () => true,
    () => false,
  );
  if (isThere) await rm(file, { force: true });
}
