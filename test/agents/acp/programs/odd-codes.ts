// An agent with an unusual error for a session that it does not have: code and message are its arguments.
import { RequestError } from '@agentclientprotocol/sdk';
import { runAgent } from './agent.ts';

const [code = '-32603', message = 'Internal error'] = process.argv.slice(2);
runAgent({ name: 'odd-codes', load: 'complete', notFound: () => new RequestError(Number(code), message) });
