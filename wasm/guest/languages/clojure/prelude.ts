/**
 * What programs in Clojure expect that nbb does not have: files as texts, standard input,
 * and names of Java's that have a plain meaning. It is evaluated once, with the functions
 * of `js/rillbox` (../clojure.ts); its value is what the host calls.
 *
 * @module
 */

export const PRELUDE = String.raw`
(let [host js/rillbox
      core 'clojure.core
      add (fn [space names]
            (create-ns space)
            (doseq [[k v] names] (intern space k v)))
      text (fn [x] (if (nil? x) "" (str x)))]
  (add core
    {'slurp (fn [path] (.slurp host (str path)))
     'spit (fn [path content & {:keys [append]}] (.spit host (str path) (text content) (boolean append)) nil)
     'read-line (fn [] (.line host))
     'line-seq (fn [_] ((fn more [] (lazy-seq (when-some [line (.line host)] (cons line (more)))))))
     'format (fn [pattern & xs] (.format host pattern (into-array xs)))
     'printf (fn [pattern & xs] (print (.format host pattern (into-array xs))))
     '*in* "/dev/stdin"
     'Exception js/Error
     'Throwable js/Error
     'RuntimeException js/Error
     'ArithmeticException js/Error
     'IllegalArgumentException js/Error
     'eprintln (fn [& xs] (.error host (apply println-str xs)))})
  (add 'System
    {'exit (fn ([] (.exit host 0)) ([code] (.exit host code)))
     'getenv (fn ([] (js->clj (.env host))) ([k] (aget (.env host) k)))
     'currentTimeMillis (fn [] (js/Date.now))
     'nanoTime (fn [] (js/Math.round (* 1e6 (.now host))))
     'getProperty (fn [k] (get {"user.dir" "/workspace" "user.home" "/home/user" "line.separator" "\n" "file.separator" "/"} k))})
  (add 'Thread {'sleep (fn [ms] (.sleep host ms) nil)})
  (add 'Math (into {} (for [k (js/Object.getOwnPropertyNames js/Math)] [(symbol k) (aget js/Math k)])))
  (let [parse (fn [s radix]
                (let [n (js/parseInt s radix)]
                  (if (and (not (js/isNaN n)) (re-matches #"[+-]?[0-9A-Za-z]+" s))
                    n
                    (throw (ex-info (str "For input string: " (pr-str s)) {:input s})))))]
    (doseq [space '[Integer Long]]
      (add space {'parseInt (fn ([s] (parse s 10)) ([s radix] (parse s radix)))
                  'parseLong (fn [s] (parse s 10))
                  'toString (fn ([n] (str n)) ([n radix] (.toString n radix)))
                  'toBinaryString (fn [n] (.toString n 2))
                  'toHexString (fn [n] (.toString n 16))
                  'MAX_VALUE js/Number.MAX_SAFE_INTEGER
                  'MIN_VALUE js/Number.MIN_SAFE_INTEGER})))
  (add 'Double {'parseDouble (fn [s] (js/parseFloat s)) 'POSITIVE_INFINITY js/Infinity 'NaN js/NaN})
  (add 'clojure.java.io
    {'reader (fn [x] x)
     'file (fn [& parts] (apply str (interpose "/" parts)))
     'exists (fn [path] (.exists host path))
     'delete-file (fn [path & _] (.remove host path) true)
     'make-parents (fn [path] (.mkdir host (subs path 0 (.lastIndexOf path "/"))) true)})
  (alter-var-root #'*print-fn* (constantly (fn [s] (.print host s))))
  (alter-var-root #'*print-err-fn* (constantly (fn [s] (.error host s))))
  (alter-var-root #'*print-newline* (constantly true))
  #js {:show (fn [x] (pr-str x))
       :json (fn [x]
               (letfn [(plain? [x]
                         (or (nil? x) (string? x) (number? x) (boolean? x) (keyword? x) (symbol? x)
                             (and (coll? x) (every? plain? (if (map? x) (mapcat identity x) x)))))]
                 (if (plain? x) (js/JSON.stringify (clj->js x)) js/undefined)))
       :complete (fn [start]
                   (->> (concat (keys (ns-map *ns*))
                                (for [[alias space] (ns-aliases *ns*), k (keys (ns-publics space))]
                                  (str alias "/" k)))
                        (map str) (filter #(.startsWith % start)) sort (into-array)))
       :unfinished (fn [s] (try (read-string (str "(do " s "\n)")) false
                             (catch :default e (boolean (re-find #"EOF" (ex-message e))))))
       :begin (fn [args] (set! *command-line-args* (seq args)))
       :error (fn [e]
                (let [data (when (map? (ex-data e)) (ex-data e))
                      inner (or (when (= :sci/error (:type data)) (ex-cause e)) e)
                      error? (.isError host inner)
                      message (if error? (or (ex-message inner) (.-message inner)) (pr-str inner))
                      parse? (= :sci.error/parse (:type (ex-data inner)))
                      data (if parse? (ex-data inner) data)
                      own (when (and (map? (ex-data inner)) (not parse?) (not= :sci/error (:type (ex-data inner)))) (ex-data inner))
                      kind (cond parse? "SyntaxError"
                                 own "ExceptionInfo"
                                 error? (.-name inner)
                                 :else "Uncaught")
                      file (some-> (:file data) (.replace "/workspace/" ""))
                      place (when (:line data) (str (or file "cell") ":" (:line data) ":" (:column data)))]
                  (js/JSON.stringify
                    #js {:name kind
                         :message (str message (when (and own (seq own)) (str " " (pr-str own))))
                         :traceback (str kind ": " message
                                         (when (and own (seq own)) (str " " (pr-str own)))
                                         (when place (str "\n    at " place)))})))})
`;
