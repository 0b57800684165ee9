import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { storageAt } from '../../../../test/contracts/transcript-file.ts';
import { temporaryFolder } from '../../../../test/temporary-folder.ts';
import { listTranscripts } from './list.ts';

test('a session is listed with its first prompt; empty sessions and other files are not', async () => {
  const path = temporaryFolder();
  const [spoken, silent, pipe, directory] = [randomUUID(), randomUUID(), randomUUID(), randomUUID()];
  const said = { type: 'user', message: { role: 'user', content: [{ type: 'text', text: 'Hello.' }] } };
  writeFileSync(join(path, `${spoken}.jsonl`), `{"type":"summary"}\n${JSON.stringify(said)}\n`);
  writeFileSync(join(path, `${silent}.jsonl`), '{"type":"summary"}\n');
  writeFileSync(join(path, 'notes.jsonl'), `${JSON.stringify(said)}\n`);
  execFileSync('mkfifo', [join(path, `${pipe}.jsonl`)]);
  mkdirSync(join(path, `${directory}.jsonl`));
  expect(await listTranscripts(storageAt(path))).toEqual([
    { id: spoken, title: 'Hello.', updatedAt: expect.any(Number) },
  ]);
});

test('a missing folder has no sessions', async () => {
  expect(await listTranscripts(storageAt(join(temporaryFolder(), 'none')))).toEqual([]);
});
