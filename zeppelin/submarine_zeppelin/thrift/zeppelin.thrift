// What Zeppelin's server and its interpreters say to each other: the structures and methods that
// versions 0.9 to 0.12 have in common. Names of fields do not travel; their numbers and types do.
// What we neither serve nor call is left out.

exception InterpreterRPCException { 1: string errorMessage }

struct RemoteInterpreterContext {
  1: string noteId
  2: string noteName
  3: string paragraphId
  4: string replName
  5: string paragraphTitle
  6: string paragraphText
  7: string authenticationInfo   // these four are JSON
  8: string config
  9: string gui
  10: string noteGui
  11: map<string, string> localProperties
}

struct RemoteInterpreterResultMessage { 1: string type  2: string data }

struct RemoteInterpreterResult {
  1: string code
  2: list<RemoteInterpreterResultMessage> msg
  3: string config
  4: string gui
  5: string noteGui
}

struct InterpreterCompletion { 1: string name  2: string value  3: string meta }

struct RemoteApplicationResult { 1: bool success  2: string msg }

service RemoteInterpreterService {
  void createInterpreter(1: string groupId, 2: string sessionId, 3: string className,
    4: map<string, string> properties, 5: string userName) throws (1: InterpreterRPCException e)
  void init(1: map<string, string> properties) throws (1: InterpreterRPCException e)
  void open(1: string sessionId, 2: string className) throws (1: InterpreterRPCException e)
  void close(1: string sessionId, 2: string className) throws (1: InterpreterRPCException e)
  void reconnect(1: string host, 2: i32 port) throws (1: InterpreterRPCException e)
  RemoteInterpreterResult interpret(1: string sessionId, 2: string className, 3: string text,
    4: RemoteInterpreterContext context) throws (1: InterpreterRPCException e)
  void cancel(1: string sessionId, 2: string className, 3: RemoteInterpreterContext context)
    throws (1: InterpreterRPCException e)
  i32 getProgress(1: string sessionId, 2: string className, 3: RemoteInterpreterContext context)
    throws (1: InterpreterRPCException e)
  string getFormType(1: string sessionId, 2: string className)
    throws (1: InterpreterRPCException e)
  list<InterpreterCompletion> completion(1: string sessionId, 2: string className, 3: string text,
    4: i32 cursor, 5: RemoteInterpreterContext context) throws (1: InterpreterRPCException e)
  void shutdown()
  string getStatus(1: string sessionId, 2: string jobId) throws (1: InterpreterRPCException e)

  list<string> resourcePoolGetAll() throws (1: InterpreterRPCException e)
  binary resourceGet(1: string sessionId, 2: string paragraphId, 3: string name)
    throws (1: InterpreterRPCException e)
  bool resourceRemove(1: string sessionId, 2: string paragraphId, 3: string name)
    throws (1: InterpreterRPCException e)
  binary resourceInvokeMethod(1: string sessionId, 2: string paragraphId, 3: string name,
    4: string message) throws (1: InterpreterRPCException e)

  void angularObjectUpdate(1: string name, 2: string sessionId, 3: string paragraphId,
    4: string object) throws (1: InterpreterRPCException e)
  void angularObjectAdd(1: string name, 2: string sessionId, 3: string paragraphId,
    4: string object) throws (1: InterpreterRPCException e)
  void angularObjectRemove(1: string name, 2: string sessionId, 3: string paragraphId)
    throws (1: InterpreterRPCException e)
  void angularRegistryPush(1: string registry) throws (1: InterpreterRPCException e)

  RemoteApplicationResult loadApplication(1: string applicationId, 2: string packageInfo,
    3: string sessionId, 4: string paragraphId) throws (1: InterpreterRPCException e)
  RemoteApplicationResult unloadApplication(1: string applicationId)
    throws (1: InterpreterRPCException e)
  RemoteApplicationResult runApplication(1: string applicationId)
    throws (1: InterpreterRPCException e)
}

struct RegisterInfo { 1: string host  2: i32 port  3: string interpreterGroupId }

struct OutputAppendEvent {
  1: string noteId
  2: string paragraphId
  3: i32 index
  4: string data
  5: string appId
}

struct OutputUpdateEvent {
  1: string noteId
  2: string paragraphId
  3: i32 index
  4: string type
  5: string data
  6: string appId
}

struct OutputUpdateAllEvent {
  1: string noteId
  2: string paragraphId
  3: list<RemoteInterpreterResultMessage> msg
}

struct ParagraphInfo {
  1: string noteId
  2: string paragraphId
  3: string paragraphTitle
  4: string paragraphText
}

service RemoteInterpreterEventService {
  void registerInterpreterProcess(1: RegisterInfo info) throws (1: InterpreterRPCException e)
  void unRegisterInterpreterProcess(1: string groupId) throws (1: InterpreterRPCException e)
  void appendOutput(1: OutputAppendEvent event) throws (1: InterpreterRPCException e)
  void updateOutput(1: OutputUpdateEvent event) throws (1: InterpreterRPCException e)
  void updateAllOutput(1: OutputUpdateAllEvent event) throws (1: InterpreterRPCException e)
  void checkpointOutput(1: string noteId, 2: string paragraphId)
    throws (1: InterpreterRPCException e)
  void sendParagraphInfo(1: string groupId, 2: string info) throws (1: InterpreterRPCException e)
  list<string> getAllResources(1: string groupId) throws (1: InterpreterRPCException e)
  binary getResource(1: string resourceId) throws (1: InterpreterRPCException e)
  list<ParagraphInfo> getParagraphList(1: string user, 2: string noteId)
    throws (1: InterpreterRPCException e)
}
