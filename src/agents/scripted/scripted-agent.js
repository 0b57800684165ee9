// The scripted agent: a real process that answers prompts by rules, without a model, and has faults on demand.
//
// Plain JavaScript with Node's own modules only, in few files: it starts about as fast as an empty program, in a checkout and in
// the published package (removing types at start would triple the time).
//
// docs/scripted-agent.md describes the questions that it answers (answers.js) and its commands (commands.js): lines of the user's message
// (the last text block of the prompt, never what comes before it) that begin with a slash.
//
// Its options are in options.ts, its messages in protocol.ts.

import { Connection } from './program/connection.js';
import { Session } from './program/session.js';
import { Turn } from './program/turn.js';

/** @import { ToProgram } from './protocol.ts' */

/** @type {Session | null} */
let session = null;
/** @type {Turn | null} */
let turn = null;
let inputEnded = false;

/** A process that was left behind ends itself after this time. */
const LONGEST_SURVIVAL_MS = 300_000;

const connection = new Connection(handle, () => {
  inputEnded = true;
  const { survives, lingers } = session?.options ?? {};
  if (turn ? !survives : !lingers) process.exit(0);
  turn?.deny();
  setTimeout(() => process.exit(1), LONGEST_SURVIVAL_MS);
});
void connection.listen();

/** @param {ToProgram} message */
async function handle(message) {
  switch (message.type) {
    case 'open': {
      if (message.options.startMs > 0) await new Promise((resolve) => setTimeout(resolve, message.options.startMs));
      session = new Session(message);
      connection.send(session.open());
      break;
    }
    case 'prompt':
      if (session && !turn) await run(session, message);
      break;
    case 'tools':
      if (session) session.noTools = false;
      break;
    case 'cancel':
      turn?.cancel();
      break;
    case 'answer':
      turn?.answer(message.id, message.optionId);
      break;
  }
}

/**
 * @param {Session} open
 * @param {Extract<ToProgram, { type: 'prompt' }>} prompt
 */
async function run(open, prompt) {
  turn = new Turn(open, prompt, connection);
  const outcome = await turn.run();
  turn = null;
  connection.send({ type: 'ended', prompt: prompt.id, outcome });
  if (inputEnded) process.exit(0);
}
