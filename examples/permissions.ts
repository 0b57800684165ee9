// An agent asks a question during a turn. The question is stored. Everyone who follows the conversation, in any process, may
// answer it; the first answer wins.
import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { open, type Permission } from 'throughline';

const home = mkdtempSync(join(tmpdir(), 'throughline-'));
// `permissions: 'ask'`: questions wait for an answer, from here or from anywhere else. Without it they are denied at once.
await using tl = await open({ home, permissions: 'ask', settings: { agents: { scripted: { adapter: 'scripted' } } } });
const chat = tl.conversation('permissions');

/** What a person would decide about the question. */
const decide = ({ title, options }: Pick<Permission, 'title' | 'options'>) => {
  const kind = title.includes('delete') ? 'reject_once' : 'allow_once';
  return options.find((option) => option.kind === kind)?.optionId ?? '';
};

for (const title of ['May I write notes.txt?', 'May I delete everything?']) {
  // The scripted agent asks, and runs the next tool only if that is allowed.
  for await (const event of chat.send(`/ask ${title}\n/tool edit notes.txt`).events) {
    if (event.kind === 'permission.asked') {
      const { optionId } = await tl.answer(event.payload.permissionId, decide(event.payload));
      console.log(`${title} → ${optionId}`);
    }
    if (event.kind === 'turn.ended') console.log(`${event.payload.outcome}: ${event.payload.reply}`);
  }
}

// If the program itself decides, a function that answers is enough.
const prompt = '/ask May I write notes.txt?\n/tool edit notes.txt';
const asked = await chat.ask(prompt, { onPermission: ({ title }) => (title.includes('delete') ? 'deny' : 'allow') });
console.log(`decided here: ${asked.reply}`);

// If nobody can answer, every question is denied at once, and the result says so.
const { reply, denied } = await chat.ask(prompt, { permissions: 'deny' });
console.log(`${denied[0]?.reason}: ${reply}`);
