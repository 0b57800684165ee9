// `import 'throughline'` in a checkout. An old Node cannot load src/index.ts, so it is loaded after the check.
import './check-node.mjs';

export const { ERROR_CODES, open, statusOf, ThroughlineError, TurnError } = await import('../src/index.ts');
