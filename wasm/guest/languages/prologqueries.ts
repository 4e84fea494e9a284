/**
 * What runs programs and cells, in Prolog: a program as `swipl FILE ARG…` does, without
 * its toplevel, and a cell as what is typed at the toplevel, or as a piece of a program.
 */
export const QUERIES = String.raw`
:- module(rillbox, [run/3, cell/4, unfinished/1, names/2]).
:- dynamic begun/0, loaded/1, answering/0.

% What is no file would be fetched, through JavaScript.
:- forall(( clause(user:prolog_load_file(_, _), _, Clause),
            clause_property(Clause, file('/swipl/library/wasm.pl')) ),
          erase(Clause)).
% What calls JavaScript by a text does not even seem to.
:- abolish(system:js_run_script/1).
% There are no processes; the module's own shell/2 seems to succeed.
:- redefine_system_predicate(system:shell(_)),
   redefine_system_predicate(system:shell(_, _)).
system:shell(Command) :- shell(Command, 0).
system:shell(Command, _) :-
    throw(error(permission_error(run, process, Command), context(shell/2, _))).

begin(Args, Env) :-
    working_directory(_, '/workspace'),
    prompt(_, ''),
    set_stream(user_output, buffer(line)),
    set_prolog_flag(toplevel_thread, true),
    dict_pairs(Env, _, Pairs),
    forall(member(Name-Value, Pairs), setenv(Name, Value)),
    set_prolog_flag(argv, Args),
    set_prolog_flag(verbose, normal).

run(File, Args, Env) :-
    begin(Args, Env),
    load_files(user:File, []),
    '$toplevel':run_program_init,
    '$toplevel':run_main_init(false),
    halt.

cell(File, Code, Args, Env) :-
    ( begun -> true ; begin(Args, Env), assertz(begun) ),
    catch(cell(File, Code), Error, true),
    flush_output(user_output),
    ( var(Error) -> true ; print_message(error, unhandled_exception(Error)), fail ).

cell(_, Code) :-
    terms(Code, [Term-Names]),
    query(Term, Goal),
    !,
    answer(Goal, Names).
cell(File, Code) :-
    ( loaded(File) -> gensym(File, Id) ; assertz(loaded(File)), Id = File ),
    statistics(errors, Before),
    setup_call_cleanup(
        ( open_string(Code, In), assertz(answering) ),
        load_files(user:Id, [stream(In)]),
        ( retractall(answering), close(In) )),
    statistics(errors, Before).

% At most two terms are of interest.
terms(Code, Terms) :-
    setup_call_cleanup(
        open_string(Code, In),
        catch(read_terms(2, In, Terms), error(syntax_error(_), _), fail),
        close(In)).

read_terms(0, _, []) :- !.
read_terms(N, In, Terms) :-
    read_term(In, Term, [module(user), variable_names(Names)]),
    (   Term == end_of_file
    ->  Terms = []
    ;   Terms = [Term-Names|Rest],
        M is N-1,
        read_terms(M, In, Rest)
    ).

% A single term is a goal, as at the toplevel, but for what begins a program.
query(Term, _) :- var(Term), !, fail.
query((?- Goal), Goal) :- !.
query((:- _), _) :- !, fail.
query((_ :- _), _) :- !, fail.
query((_ --> _), _) :- !, fail.
query((_ => _), _) :- !, fail.
query([File|Files], consult([File|Files])) :- !.
query(Goal, Goal) :-
    (   catch(predicate_property(user:Goal, visible), _, fail)
    ->  true
    ;   \+ ground(Goal)
    ).

:- multifile system:term_expansion/2.
:- dynamic system:term_expansion/2.
system:term_expansion((?- Goal), []) :-
    answering,
    prolog_load_context(variable_names, Names),
    catch(answer(Goal, Names), Error,
          print_message(error, unhandled_exception(Error))).

% Prints the first answers, as the toplevel does.
answer(Goal0, Names) :-
    expand_goal(user:Goal0, Goal),
    State = count(0),
    (   call_cleanup(user:Goal, Det = true),
        flush_output(user_output),
        arg(1, State, N0),
        N is N0+1,
        nb_setarg(1, State, N),
        \+ \+ print_answer(Names),
        (   Det == true
        ->  writeln('.')
        ;   N >= 10
        ->  writeln(' ;'), writeln('...')
        ;   writeln(' ;'), fail
        )
    ->  true
    ;   flush_output(user_output),
        writeln('false.')
    ).

print_answer(Names0) :-
    exclude([Name=_]>>sub_atom(Name, 0, _, _, '_'), Names0, Names),
    copy_term(Names, Bindings, Residual),
    same(Bindings, Shown),
    maplist([Name=Value]>>(var(Value) -> Value = '$VAR'(Name) ; true), Bindings),
    term_variables(Shown-Residual, Others),
    foldl([Var, I, J]>>(J is I+1, atom_concat('_', I, Name), Var = '$VAR'(Name)),
          Others, 1, _),
    (   Shown == [], Residual == []
    ->  write(true)
    ;   append(Shown, Residual, All),
        print_all(All)
    ).

% Variables that are one are shown once more, unbound ones else not at all.
same([], []).
same([Name=Value|Rest], Shown) :-
    var(Value),
    !,
    (   member(Other=Value2, Rest), Value2 == Value
    ->  Shown = ['$VAR'(Name)='$VAR'(Other)|More]
    ;   Shown = More
    ),
    same(Rest, More).
same([Name=Value|Rest], ['$VAR'(Name)=Value|Shown]) :-
    same(Rest, Shown).

print_all([Last]) :- !, print_one(Last).
print_all([First|Rest]) :- print_one(First), writeln(','), print_all(Rest).

print_one(Name=Value) :- !, print_part(Name, 699), write(' = '), print_part(Value, 699).
print_one(_:Term) :- !, print_one(Term).
print_one(Term) :- print_part(Term, 999).
print_part(Term, Priority) :-
    write_term(Term, [quoted(true), portray(true), numbervars(true),
                      spacing(next_argument), priority(Priority)]).

% Whether a text ends within a term.
unfinished(Text) :-
    setup_call_cleanup(
        open_string(Text, In),
        catch(skip_terms(In), Error, true),
        close(In)),
    nonvar(Error),
    Error = error(syntax_error(Which), _),
    ( Which == end_of_file ; compound(Which), compound_name_arguments(Which, Name, _), sub_atom(Name, 0, _, _, end_of_file) ; sub_atom(Which, 0, _, _, end_of_file) ),
    !.

skip_terms(In) :-
    repeat,
    read_term(In, Term, [module(user)]),
    Term == end_of_file,
    !.

% The predicates and flags whose names begin so.
names(Begun, Names) :-
    findall(Name,
            ( current_predicate(_, Module:Head), memberchk(Module, [user, system, lists, apply]),
              functor(Head, Name, _), sub_atom(Name, 0, _, _, Begun),
              \+ sub_atom(Name, 0, _, _, '$') ),
            All),
    sort(All, Names).
`;
