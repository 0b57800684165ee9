import { asObject } from '../connection/capabilities.ts';
import type { Quirks } from './description.ts';

/** How the message begins that replaces everything before a compaction. */
const SUMMARY = 'This session is being continued from a previous conversation';
/** What Claude writes in the person's place when a prompt was stopped. */
const NOTE = /^\[Request interrupted by user(?: for tool use)?\]$/;

/** Where claude-agent-acp differs from the protocol. */
export const CLAUDE_QUIRKS: Quirks = {
  ownWords(who, text) {
    if (text.startsWith(SUMMARY)) return 'summary';
    return who === 'person' && NOTE.test(text.trim()) ? 'note' : null;
  },
  loginStatus: {
    method: '_auth/status_update',
    loggedIn(params) {
      const { kind } = asObject(asObject(params).authStatus);
      return typeof kind === 'string' ? kind !== 'none' : null;
    },
  },
  withoutTools: {
    version: '0.99.0',
    profile: {
      kind: 'meta',
      meta: { claudeCode: { options: { tools: [], settingSources: [], strictMcpConfig: true } } },
    },
    // This variable makes it run another program than the one that was tried.
    unless: ({ env }) => 'CLAUDE_CODE_EXECUTABLE' in env,
  },
};
