import type { Words } from '../support/history.ts';
import { load } from './contender.ts';

interface Graph {
  invoke(input: object, config: object): Promise<unknown>;
  updateState(config: object, values: object): Promise<unknown>;
}

interface Builder {
  addNode(name: string, run: () => Promise<object>): Builder;
  addEdge(from: string, to: string): Builder;
  compile(options: object): Graph;
}

interface LangGraph {
  readonly MessagesAnnotation: object;
  readonly START: string;
  readonly END: string;
  readonly StateGraph: new (state: object) => Builder;
}

type Message = new (text: string) => object;

export interface Thread {
  /** One prompt, and its reply. */
  turn(prompt: string): Promise<void>;
}

/**
 * LangGraph with its checkpointer for PostgreSQL: a graph of one node that answers at once. With `durability: 'sync'`, checkpoints are
 * written before the next step begins, so that no answer is lost. With `exit`, only one is written, at the end. `answer`: the next reply.
 */
export async function openLangGraph(url: string, durability: 'sync' | 'exit', answer: () => string) {
  const { StateGraph, MessagesAnnotation, START, END } = await load<LangGraph>('@langchain/langgraph');
  const { HumanMessage, AIMessage } = await load<Record<string, Message>>('@langchain/core/messages');
  if (HumanMessage === undefined || AIMessage === undefined) throw new Error('LangChain has no messages.');
  interface Saver {
    setup(): Promise<void>;
    end(): Promise<void>;
  }
  type SaverPackage = { PostgresSaver: { fromConnString(url: string): Saver } };
  const { PostgresSaver } = await load<SaverPackage>('@langchain/langgraph-checkpoint-postgres');
  const saver = PostgresSaver.fromConnString(url);
  await saver.setup();
  const graph = new StateGraph(MessagesAnnotation)
    .addNode('agent', async () => ({ messages: [new AIMessage(answer())] }))
    .addEdge(START, 'agent')
    .addEdge('agent', END)
    .compile({ checkpointer: saver });
  return {
    /** Creates a thread that already has these turns. */
    async thread(name: string, told: readonly Words[]): Promise<Thread> {
      const config = { configurable: { thread_id: name } };
      const said = told.flatMap(({ prompt, reply }) => [new HumanMessage(prompt), new AIMessage(reply)]);
      if (said.length > 0) await graph.updateState(config, { messages: said });
      return {
        async turn(text) {
          await graph.invoke({ messages: [new HumanMessage(text)] }, { ...config, durability });
        },
      };
    },
    close: () => saver.end(),
  };
}
