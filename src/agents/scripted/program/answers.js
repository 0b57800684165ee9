/** @import { Session } from './session.js' */

/**
 * The reply to a message that is not a command, made from the session's context alone.
 * @param {string} message
 * @param {Session} session
 */
export function answer(message, session) {
  for (const [question, reply] of QUESTIONS) {
    const match = question.exec(message);
    if (match) return reply(session, match);
  }
  const short = message.replaceAll(/\s+/g, ' ').trim();
  return `Noted: ${short.length > 60 ? `${short.slice(0, 60)}…` : short}`;
}

/** @type {[RegExp, (session: Session, match: RegExpExecArray) => string][]} */
const QUESTIONS = [
  [
    /\b(?:which|what)\b[^.\n]*\bcodewords?\b(?!\s*(?:is\b|:))/i,
    (session) => {
      const words = codewords(session);
      return words.length > 0 ? `I have seen these codewords: ${words.join(', ')}.` : 'I have seen no codewords.';
    },
  ],
  [
    /\bhow many messages\b/i,
    (session) => {
      const prompts = told(session);
      const record = prompts.some((text) => text.includes('<conversation-record '));
      return `I was given ${prompts.length} prompts; ${record ? 'a' : 'no'} conversation record was delivered.`;
    },
  ],
  [
    /\brepeat the (first|last) prompt\b/i,
    (session, match) => {
      const before = told(session).slice(0, -1);
      return (
        (match[1]?.toLowerCase() === 'first' ? before[0] : before.at(-1)) ?? 'There was no prompt before this one.'
      );
    },
  ],
  [
    /\bwhat is your system prompt\b/i,
    ({ system }) => (system === '' ? 'My system prompt is empty.' : `My system prompt is: ${system}`),
  ],
  [/\bwhich session\b/i, ({ id }) => `This is session ${id}.`],
  [/\bwhich directory\b/i, () => `I am in ${process.cwd()}.`],
  [/\bwhich environment variables\b/i, () => `I have ${Object.keys(process.env).sort().join(', ')}.`],
];

/** @param {Session} session */
function told(session) {
  return session.memory.entries.flatMap((entry) => (entry.role === 'user' ? [entry.text] : []));
}

/** @param {Session} session */
function codewords(session) {
  const matches = told(session).flatMap((text) => [...text.matchAll(/\bcodeword(?: is|:)\s+([A-Za-z0-9][\w-]*)/gi)]);
  return [...new Set(matches.map((match) => match[1]))];
}
