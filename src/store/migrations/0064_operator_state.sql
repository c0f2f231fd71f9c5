-- The operator's document of several boxes on one database; of one box alone it is the file state.json.
CREATE TABLE operator_state (
  id INTEGER PRIMARY KEY,
  document TEXT NOT NULL
);
