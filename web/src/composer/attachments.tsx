import { FileText, Paperclip, X } from 'lucide-react';
import { type DragEvent, useEffect, useRef, useState } from 'react';
import type { ContentBlock } from 'throughline/client';
import { draftOf, editDraft } from '../data/drafts/draft.ts';
import { type Attachment, blockOf } from '../data/drafts/prompt.ts';
import { useActions } from '../shell/actions.ts';
import { IconButton } from '../ui/button.tsx';
import { sayError } from '../ui/say.ts';

/** Adds files to a draft. If one cannot be sent, an error names it, and the others are added. */
export async function attach(draft: string, files: Iterable<File>): Promise<void> {
  for (const file of files) {
    try {
      const name = file.name || 'pasted';
      const block = blockOf(name, new Uint8Array(await file.arrayBuffer()));
      const one: Attachment = { id: crypto.randomUUID(), name, block };
      editDraft(draft, { attachments: [...draftOf(draft).getState().attachments, one] });
    } catch (error) {
      sayError(error);
    }
  }
}

export function Attachments({ of, attachments }: { of: string; attachments: readonly Attachment[] }) {
  if (attachments.length === 0) return null;
  const remove = (id: string) => editDraft(of, { attachments: attachments.filter((one) => one.id !== id) });
  return (
    <ul aria-label="Attached files" className="flex flex-wrap gap-2 px-3 pt-2">
      {attachments.map(({ id, name, block }) => (
        <li
          key={id}
          className="flex max-w-60 items-center gap-1 rounded-md border border-line bg-sunken pl-1.5 text-facts"
        >
          <Thumbnail block={block} />
          <span className="min-w-0 truncate">{name}</span>
          <IconButton label={`Remove ${name}`} small onClick={() => remove(id)}>
            <X size={14} />
          </IconButton>
        </li>
      ))}
    </ul>
  );
}

function Thumbnail({ block }: { block: ContentBlock }) {
  const [url, setUrl] = useState<string | null>(null);
  useEffect(() => {
    if (block.type !== 'image') return;
    const bytes = Uint8Array.from(atob(block.data), (char) => char.charCodeAt(0));
    const made = URL.createObjectURL(new Blob([bytes], { type: block.mimeType }));
    setUrl(made);
    return () => URL.revokeObjectURL(made);
  }, [block]);
  if (url === null) return <FileText size={14} className="shrink-0 text-muted" aria-hidden />;
  return <img src={url} alt="" className="size-7 shrink-0 rounded-sm object-cover" />;
}

/** Adds files to a draft by the file dialog. */
export function AttachButton({ of }: { of: string }) {
  const file = useRef<HTMLInputElement>(null);
  useActions([
    { id: 'composer.attach', title: 'Attach files', group: 'Conversation', run: () => file.current?.click() },
  ]);
  return (
    <>
      <IconButton label="Attach files" small className="[grid-area:attach]" onClick={() => file.current?.click()}>
        <Paperclip size={15} />
      </IconButton>
      <input
        ref={file}
        type="file"
        multiple
        hidden
        aria-label="Files to attach"
        onChange={({ target }) => {
          void attach(of, [...(target.files ?? [])]);
          target.value = '';
        }}
      />
    </>
  );
}

/** Accepts dropped files. */
export function useDropping(onFiles: (files: readonly File[]) => void) {
  const [isOver, setOver] = useState(false);
  const hasFiles = ({ dataTransfer }: DragEvent) => dataTransfer.types.includes('Files');
  const handlers = {
    onDragOver: (event: DragEvent) => {
      if (!hasFiles(event)) return;
      event.preventDefault();
      setOver(true);
    },
    onDragLeave: () => setOver(false),
    onDrop: (event: DragEvent) => {
      setOver(false);
      if (!hasFiles(event)) return;
      event.preventDefault();
      onFiles([...event.dataTransfer.files]);
    },
  };
  return { isOver, handlers };
}
