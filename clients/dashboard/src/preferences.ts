// What this person chose on this machine. Nothing is stored before something is chosen.
import { signal } from "@preact/signals";

const key = "earshot preferences";
type Preferences = { notify: boolean; sound: boolean };

function load(): Preferences {
  const none = { notify: false, sound: false };
  try {
    return { ...none, ...(JSON.parse(localStorage.getItem(key) ?? "{}") as Partial<Preferences>) };
  } catch {
    return none;
  }
}

export const preferences = signal(load());

export function choose(changed: Partial<Preferences>) {
  preferences.value = { ...preferences.value, ...changed };
  localStorage.setItem(key, JSON.stringify(preferences.value));
}

/** The browser said no to notifications: it does not ask a second time. */
export const blocked = signal(false);

/** Asks the browser, too. */
export async function toggleNotify() {
  if (preferences.value.notify) return choose({ notify: false });
  const granted = (await Notification.requestPermission()) === "granted";
  blocked.value = !granted;
  if (granted) choose({ notify: true });
}

let audio: AudioContext | undefined;
export function beep() {
  audio ??= new AudioContext();
  const tone = audio.createOscillator();
  const gain = audio.createGain();
  tone.frequency.value = 660;
  gain.gain.setValueAtTime(0.08, audio.currentTime);
  gain.gain.exponentialRampToValueAtTime(0.001, audio.currentTime + 0.35);
  tone.connect(gain).connect(audio.destination);
  tone.start();
  tone.stop(audio.currentTime + 0.4);
}

