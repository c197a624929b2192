// Pictures of a conversation. The daemon does not send them with events: they are read from the record, and drawn on a canvas, so that the page needs no
// permission to load images, and nothing but pixels of a PNG, JPEG, GIF or WebP file is shown.
import { useEffect, useRef, useState } from "preact/hooks";
import type { EarshotEvent } from "../../sdk/src/index.js";
import { Dialog } from "./Dialog.js";
import { bytes } from "./format.js";
import { imagesOf, type Picture } from "./record.js";
import type { OpenSession } from "./session.js";

export interface Media { kind: string; media_type?: string; bytes?: number }

const delay_ms = 300; // pictures that only scroll past are not read
const load_bytes_max = 4 << 20; // larger ones are read on request
const thumbnail_px = 640;
const whole_px = 4096;

function Canvas({ picture, width_max, label }: { picture: Picture; width_max: number; label: string }) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [state, setState] = useState<"loading" | "drawn" | "failed">("loading");
  const scale = Math.min(1, width_max / Math.max(picture.width, picture.height));
  const [width, height] = [Math.max(1, Math.round(picture.width * scale)), Math.max(1, Math.round(picture.height * scale))];
  useEffect(() => {
    let closed = false;
    createImageBitmap(new Blob([picture.data], { type: picture.type }), { resizeWidth: width, resizeHeight: height, resizeQuality: "high" }).then((bitmap) => {
      if (!closed) canvas.current?.getContext("2d")?.drawImage(bitmap, 0, 0);
      bitmap.close();
      setState("drawn");
    }, () => setState("failed"));
    return () => void (closed = true);
  }, [picture, width]);
  return state === "failed" ? <p class="note">This picture cannot be decoded.</p> : <canvas ref={canvas} class="picture" data-loading={state === "loading" ? "" : undefined} role="img" aria-label={label} width={width} height={height} />;
}

/** `nth`: which of the record's pictures, if its size does not say. */
export function PictureView({ session, event, media, nth }: { session: OpenSession; event: EarshotEvent; media: Media; nth: number }) {
  const [state, setState] = useState<Picture | "loading" | { error: string } | undefined>(undefined);
  const [open, setOpen] = useState(false);
  const label = [media.kind, media.media_type, media.bytes && bytes(media.bytes)].filter(Boolean).join(", ");
  const load = async () => {
    setState("loading");
    try {
      const pictures = imagesOf(await session.read(event.stream, event.cursor));
      setState(pictures.find(({ data }) => data.length === media.bytes) ?? pictures[nth] ?? { error: "the record contains no picture that can be shown" });
    } catch (error) {
      setState({ error: (error as Error).message });
    }
  };
  const by_itself = media.kind === "image" && (media.bytes ?? 0) <= load_bytes_max;
  useEffect(() => {
    if (!by_itself) return;
    const timer = setTimeout(() => void load(), delay_ms);
    return () => clearTimeout(timer);
  }, []);
  if (media.kind !== "image") return <p class="note">{label}</p>;
  if (state && state !== "loading" && !("error" in state)) {
    return (
      <figure>
        <button type="button" class="picture-button" aria-label={`Open the ${label}`} onClick={() => setOpen(true)}><Canvas picture={state} width_max={thumbnail_px} label={label} /></button>
        <figcaption class="note">{label}, {state.width} × {state.height}</figcaption>
        {open ? <Dialog title={label} close={() => setOpen(false)}><div class="picture-whole"><Canvas picture={state} width_max={whole_px} label={label} /></div></Dialog> : null}
      </figure>
    );
  }
  return <p class="note" data-loading={state === "loading" || (state === undefined && by_itself) ? "" : undefined}>{label} {state === "loading" ? "…" : state ? `: ${state.error}` : <button type="button" onClick={() => void load()}>Show</button>}</p>;
}
