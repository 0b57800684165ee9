// An agent with its own way of saying that it has no such session: the code and the words are its arguments.
import { RequestError } from '@agentclientprotocol/sdk';
import { runAgent } from './agent.ts';

const [code = '-32603', words = 'Internal error'] = process.argv.slice(2);
runAgent({ name: 'odd-codes', load: 'honest', notFound: () => new RequestError(Number(code), words) });
