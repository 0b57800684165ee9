// Runs tests of the embedded engine through a server, with `fetch`.
import { testsBy } from '../support/way.ts';

await testsBy('tcp', [
  'engine/answer',
  'engine/messages',
  'engine/pinned',
  'engine/handoff',
  'engine/reading',
  'engine/erase',
  'engine/verbs',
  'engine/told',
  'engine/pending',
  'engine/queue',
  'engine/live',
  'engine/sandboxes',
  'engine/worktree',
]);
