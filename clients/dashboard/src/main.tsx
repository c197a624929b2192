import "./style.css";
import "./overview.css";
import "./session.css";
import { render } from "preact";
import { App } from "./App.js";
import "./attention.js";
import { begin } from "./connection.js";
import "./keyboard.js";

const app = document.getElementById("app")!;
app.replaceChildren();
render(<App />, app);
void begin();
